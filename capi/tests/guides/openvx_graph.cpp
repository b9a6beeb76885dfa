#include <cstdio>
#include <laxity/vx.hpp>

namespace vx = laxity::vx;
using namespace std::chrono_literals;

namespace
{

struct Camera {
    bool read(uint8_t *pixels)
    {
        pixels[0] = 1;
        return frames++ < 5;
    }
    int frames = 0;
};

void convert(vx::Table<const uint8_t> from, vx::Table<uint8_t> to)
{
    to(0, 0) = from(0, 0);
}

uint64_t compare(vx::Table<const uint8_t> one, vx::Table<const uint8_t> other)
{
    return one(0, 0) != other(0, 0);
}

void show(uint64_t moving)
{
    std::printf("%d\n", static_cast<int>(moving));
}

void graph_of(Camera &camera)
{
// openvx.md 1
}

void under_laxity(const vx::Verified &verified)
{
// openvx.md 2
}

void on_a_gpu(const laxity_device_config &config, const laxity_gpus *gpus, void (*invert)(void *pixels))
{
    const size_t bytes = 64;
    vx::Graph graph("inverted");
    const auto from = graph.object("from", vx::bytes(bytes));
    const auto to = graph.object("to", vx::bytes(bytes));
// openvx.md 3
}

} // namespace

int main(int argc, char **)
{
    Camera camera;

    graph_of(camera);
    if (argc > 1) {
        under_laxity(vx::Graph("none").verify());
        on_a_gpu({}, nullptr, [](void *) {});
    }
}
