// How much of an image moves, as a vision graph: frames are compared with those of two frames ago, while the next ones
// are read.
//
//     g++ -std=c++17 motion.cpp $(pkg-config --cflags --libs laxity) -pthread -o motion
//     ./motion & laxity graph watch motion --once
//
// Prints, for each of 30 frames, how many of its pixels differ: 480 in the first two, whose past is black, then 960.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <laxity/vx.hpp>

namespace vx = laxity::vx;
using namespace std::chrono_literals;

constexpr size_t WIDTH = 320, HEIGHT = 240;
constexpr uint64_t FRAMES = 30;

// A bar, two pixels wide, that goes to the right.
static void draw(uint8_t *pixels, uint64_t frame)
{
    std::memset(pixels, 0, WIDTH * HEIGHT);
    for (size_t row = 0; row < HEIGHT; row++)
        std::memset(pixels + row * WIDTH + 2 * frame, 255, 2);
}

int main()
{
    try {
        vx::Graph graph("motion", std::getenv("LAXITY_DIRECTORY"));
        const auto raw = graph.object("raw", vx::image<uint8_t>(WIDTH, HEIGHT));
        const auto gray = graph.delay("gray", vx::image<uint8_t>(WIDTH, HEIGHT), 3); // this frame's and two before
        const auto moving = graph.object("moving", vx::value<uint64_t>());

        // In front of all nodes; says whether there is a frame.
        graph.input({ vx::output(raw) }, [=](vx::Job &job) {
            draw(job.write(raw).data(), job.index());
            return job.index() < FRAMES;
        });
        graph.node("convert", { vx::input(raw), vx::output(gray) },
                   [=](vx::Job &job) { std::memcpy(job.write(gray).data(), job.read(raw).data(), WIDTH * HEIGHT); });
        graph.node("compare", { vx::input(gray), vx::past(gray, 2), vx::output(moving) }, [=](vx::Job &job) {
            const uint8_t *now = job.read(gray).data();
            const uint8_t *before = job.read(gray, 2).data();
            uint64_t &count = job.write(moving);

            count = 0;
            for (size_t pixel = 0; pixel < WIDTH * HEIGHT; pixel++)
                count += now[pixel] != before[pixel];
        });
        // Behind all nodes.
        graph.output({ vx::input(moving) },
                     [=](vx::Job &job) { std::printf("%llu ", static_cast<unsigned long long>(job.read(moving))); });

        const vx::Verified verified = graph.verify();
        const vx::Run run = verified.spawn({ 2ms });
        run.wait();
        std::printf("\n");
    } catch (const laxity::Error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
