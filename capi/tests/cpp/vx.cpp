// Vision graphs from C++. Takes a directory for names, checks the results, and prints "ok".

#include "expect.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <laxity/vx.hpp>
#include <thread>
#include <unistd.h>

namespace vx = laxity::vx;
using namespace std::chrono_literals;

namespace
{

const char *directory;

struct Point {
    float x, y;
};

struct Sum {
    uint64_t of_pixels;
    uint64_t of_earlier;
};

constexpr size_t WIDTH = 16, HEIGHT = 4;
constexpr uint64_t FRAMES = 40;

// The result of the graph below, computed without a graph.
std::vector<uint64_t> loop()
{
    std::vector<uint64_t> results;
    std::vector<uint64_t> sums = { 7, 7 };

    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        const uint64_t pixels = WIDTH * HEIGHT * (frame + 1);
        const uint64_t earlier = sums[frame];
        sums.push_back(pixels);
        results.push_back(pixels + 1000 * earlier + frame % 5);
    }
    return results;
}

// Every kind of object, a delay with initial values, both callbacks, and pauses.
void computes_what_a_loop_computes(const vx::Options &options)
{
    vx::Graph graph("computes", directory);
    std::vector<uint64_t> results;
    const auto image = graph.object("image", vx::image<uint8_t>(WIDTH, HEIGHT));
    const auto copy = graph.object("copy", vx::bytes(WIDTH * HEIGHT));
    const auto points = graph.object("points", vx::array<Point>(4));
    const auto sums = graph.delay_from("sums", vx::value<Sum>(), 3, [](Sum &sum) { sum.of_pixels = 7; });
    const auto table = graph.object("table", vx::matrix<double>(2, 3));

    graph.input({ vx::output(image) }, [=](vx::Job &job) {
        auto pixels = job.write(image);

        EXPECT(pixels.rows() == HEIGHT && pixels.columns() == WIDTH);
        std::memset(pixels.data(), static_cast<int>(job.index()), WIDTH * HEIGHT);
        return job.index() < FRAMES;
    });
    graph.node("brighten", { vx::inout(image) }, [=](vx::Job &job) {
        auto pixels = job.write(image);

        for (size_t row = 0; row < HEIGHT; row++)
            for (size_t column = 0; column < WIDTH; column++)
                pixels(row, column)++;
    });
    graph.node("copy", { vx::input(image), vx::output(copy), vx::output(points) }, [=](vx::Job &job) {
        std::memcpy(job.write(copy).data(), job.read(image).data(), WIDTH * HEIGHT);
        const auto found = job.write(points);

        EXPECT(found.size() == 0 && found.capacity() == 4);
        for (uint64_t point = 0; point < job.index() % 5; point++)
            EXPECT(found.push_back({ 1, 2 }));
        EXPECT(job.index() % 5 < 4 || !found.push_back({ 3, 4 }));
    });
    graph.node("sum", { vx::input(copy), vx::past(sums, 2), vx::output(sums) }, [=](vx::Job &job) {
        Sum &sum = job.write(sums);

        if (job.index() % 7 == 0)
            std::this_thread::sleep_for(300us);
        sum = { 0, job.read(sums, 2).of_pixels };
        for (const uint8_t pixel : job.read(copy))
            sum.of_pixels += pixel;
    });
    graph.node("table", { vx::input(sums), vx::input(points), vx::output(table) }, [=](vx::Job &job) {
        const Sum &sum = job.read(sums);

        job.write(table)(1, 2) = static_cast<double>(sum.of_pixels + 1000 * sum.of_earlier + job.read(points).size());
    });
    graph.output({ vx::input(table) },
                 [=, &results](vx::Job &job) { results.push_back(static_cast<uint64_t>(job.read(table)(1, 2))); });

    const vx::Verified verified = graph.verify();
    EXPECT(verified.depth() == 6);
    EXPECT(verified.dot().find("digraph") == 0);
    const vx::Run run = verified.spawn(options);
    run.wait();
    EXPECT(run.begun() == FRAMES && run.completed() == FRAMES);
    EXPECT(results == loop());
    const std::vector<vx::Frame> frames = run.frames();
    EXPECT(frames.size() == FRAMES);
    for (size_t frame = 0; frame < FRAMES; frame++) {
        EXPECT(frames[frame].index == frame && frames[frame].completion_ns >= frames[frame].release_ns);
        EXPECT(frames[frame].release_ns == frames[0].release_ns + frame * static_cast<uint64_t>(options.period.count()));
    }
}

void computes_it_with_any_replicas()
{
    for (const uint32_t replicas : { 0, 1, 2, 7 }) {
        vx::Options options;
        options.period = 200us;
        options.replicas = replicas;
        computes_what_a_loop_computes(options);
    }
}

// Whether Linux lets this thread be a task, which it is no more when this returns.
bool may_be_a_task(const laxity_system *system)
{
    laxity::Handle<laxity_task, laxity_task_release> task;
    laxity_task_parameters parameters = {};

    parameters.name = "permission";
    parameters.period_ns = 1'000'000;
    return laxity_task_begin(system, &parameters, task.out()) == LAXITY_OK;
}

// By Laxity's own scheduler, with a trace that is there when the run is released.
void computes_it_as_tasks_of_a_system()
{
    laxity::Handle<laxity_system, laxity_system_release> system;
    const laxity_system_config all = {};
    const std::string trace = std::string(directory) + "/trace.lxt";
    vx::Options options;

    options.period = 2ms;
    options.policy = vx::scheduled_by(nullptr);
    const auto none = thrown<laxity::Error>([&] { computes_what_a_loop_computes(options); });
    EXPECT(none.result() == LAXITY_ERROR_VALUE && std::strstr(none.what(), "has no system; name"));
    laxity::check(laxity_system_create_or_attach(directory, "vx", &all, system.out()));
    if (!may_be_a_task(system.get())) {
        std::fprintf(stderr, "skipped: %s\n", laxity::last_error().what());
        return;
    }
    options.policy = vx::scheduled_by(system.get(), 1);
    const auto beyond = thrown<laxity::Error>([&] { computes_what_a_loop_computes(options); });
    EXPECT(beyond.result() == LAXITY_ERROR_SCHEDULE && std::strstr(beyond.what(), "cluster 1 is not one of"));
    options.policy = vx::scheduled_by(system.get());
    options.trace = trace;
    computes_what_a_loop_computes(options);
    EXPECT(access(trace.c_str(), R_OK) == 0 && unlink(trace.c_str()) == 0);
}

void what_a_kernel_throws_is_the_cause()
{
    vx::Graph graph("throws", directory);
    std::atomic<bool> is_fatal = true;

    graph.node("first", {}, [](vx::Job &) {});
    graph.node("second", {}, [&](vx::Job &job) {
        if (is_fatal && job.index() == 3)
            throw std::out_of_range("no such face");
    });
    const vx::Verified verified = graph.verify();
    {
        const vx::Run run = verified.spawn({ 200us });
        // More than there will ever be: until it has ended.
        run.wait_for_frames(UINT64_MAX);
        // Refused, as its name is taken: that is no other run, and forgets nothing.
        const auto taken = thrown<laxity::Error>([&] { verified.spawn({ 200us }); });
        EXPECT(taken.result() == LAXITY_ERROR_EXISTS);
        const auto failed = thrown<vx::Failed>([&] { run.wait(); });
        EXPECT(failed.node() == "second" && failed.result() == LAXITY_ERROR_FAILED);
        EXPECT(std::string(failed.what()) ==
               "graph throws: node second, frame 3: no such face (VX_ERROR_GRAPH_ABANDONED)");
        thrown<std::out_of_range>([&] { std::rethrow_exception(failed.cause()); });
    }
    is_fatal = false;
    const vx::Run again = verified.spawn({ 200us });
    EXPECT(again.wait_for_frames(5) >= 5);
    EXPECT(!again.wait_for(1ns));
    again.stop();
    again.wait();
    EXPECT(again.begun() == again.completed());
}

void what_cannot_be_is_refused()
{
    vx::Graph two("two", directory);
    const auto object = two.object("a", vx::bytes(1));

    two.node("one", { vx::output(object) }, [](vx::Job &) {});
    two.node("other", { vx::output(object) }, [](vx::Job &) {});
    const auto error = thrown<laxity::Error>([&] { two.verify(); });
    EXPECT(error.result() == LAXITY_ERROR_VERIFY);
    EXPECT(std::strstr(error.what(), "VX_ERROR_MULTIPLE_WRITERS"));

    vx::Graph graph("undeclared", directory);
    const auto a = graph.object("a", vx::bytes(1));
    const auto b = graph.object("b", vx::bytes(1));
    graph.node("writer", { vx::output(a), vx::output(b) }, [](vx::Job &) {});
    graph.node("reader", { vx::input(a) }, [=](vx::Job &job) {
        const auto of_input = thrown<laxity::Error>([&] { job.write(a); });
        EXPECT(of_input.result() == LAXITY_ERROR_ACCESS);
        const auto of_other = thrown<laxity::Error>([&] { job.read(b); });
        EXPECT(of_other.result() == LAXITY_ERROR_ACCESS);
        const auto of_gpu = thrown<laxity::Error>([&] { job.gpu(); });
        EXPECT(of_gpu.result() == LAXITY_ERROR_NO_GPU);
    });
    const vx::Verified verified = graph.verify();
    const auto early = thrown<laxity::Error>([&] { verified.spawn({ 0ns }); });
    EXPECT(early.result() == LAXITY_ERROR_VALUE);
    const auto high = thrown<laxity::Error>([&] { verified.spawn({ 1ms, vx::fifo(97) }); });
    EXPECT(high.result() == LAXITY_ERROR_VALUE);
    const auto none = thrown<laxity::Error>([&] { verified.spawn({ 1ms, vx::deadline() }); });
    EXPECT(none.result() == LAXITY_ERROR_SCHEDULE);
    vx::Options options{ 200us };
    options.frames = 3;
    const vx::Run run = verified.spawn(options);
    const auto running = thrown<laxity::Error>([&] { verified.spawn(options); });
    EXPECT(running.result() == LAXITY_ERROR_EXISTS);
    run.wait();
}

// A name that cannot be one was "not enough memory", and a matrix larger than memory can be one of sixteen bytes.
void impossible_names_and_sizes_are_refused_as_such()
{
    for (const std::string &name : { std::string("a/b"), std::string(300, 'n') }) {
        vx::Graph graph(name.c_str(), directory);
        const auto a = graph.object("a", vx::bytes(8));
        graph.node("n", { vx::output(a) }, [](vx::Job &) {});
        const vx::Verified verified = graph.verify();
        const auto bad = thrown<laxity::Error>([&] { verified.spawn({ 1ms }); });
        EXPECT(bad.result() == LAXITY_ERROR_NAME);
    }
    const vx::Matrix<uint64_t> wraps((size_t(1) << 61) + 1, 8);
    EXPECT(wraps.bytes() == SIZE_MAX);
    EXPECT(vx::Matrix<uint64_t>(3, 4).bytes() == 96 && vx::Matrix<uint64_t>(0, SIZE_MAX).bytes() == 0);
    vx::Graph graph("wraps", directory);
    const auto large = graph.object("a", wraps);
    graph.node("n", { vx::output(large) }, [](vx::Job &) {});
    const auto too_large = thrown<laxity::Error>([&] { graph.verify().spawn({ 1ms }); });
    EXPECT(too_large.result() != LAXITY_OK);
}

// Copies in, inverts on the GPU and copies out, in every frame.
void nodes_use_a_gpu(const char *server)
{
    const std::string name = "vx-cpp-" + std::to_string(getpid());
    laxity_device_config config = {};
    config.name = name.c_str();
    config.memory = 1 << 20;
    config.server = server;
    const laxity::Device device(config);
    const laxity::Buffer buffer(device, WIDTH);
    vx::Graph graph("gpu", directory);
    const auto from = graph.object("from", vx::bytes(WIDTH));
    const auto to = graph.object("to", vx::bytes(WIDTH));

    graph.node("fill", { vx::output(from) }, [=](vx::Job &job) {
        for (uint8_t &pixel : job.write(from))
            pixel = static_cast<uint8_t>(job.index());
    });
    graph.node("invert", { vx::input(from), vx::output(to) }, [=, &buffer](vx::Job &job) {
        const laxity::Gpu gpu = job.gpu();

        gpu.copy_in(buffer, job.read(from).data(), WIDTH);
        gpu.launch([&](const laxity::View &view) {
            auto *pixels = static_cast<uint8_t *>(view.write(buffer));
            for (size_t pixel = 0; pixel < WIDTH; pixel++)
                pixels[pixel] = static_cast<uint8_t>(~pixels[pixel]);
        });
        gpu.copy_out(buffer, job.write(to).data(), WIDTH);
        EXPECT(!gpu.holds_token());
        thrown<std::out_of_range>([&] { gpu.launch([](const laxity::View &) { throw std::out_of_range("kernel"); }); });
        gpu.release();
    });
    graph.node("check", { vx::input(to) }, [=](vx::Job &job) {
        for (const uint8_t pixel : job.read(to))
            EXPECT(pixel == static_cast<uint8_t>(~job.index()));
    });
    vx::Options options{ 500us };
    options.frames = 10;
    options.gpu = &device;
    const vx::Verified verified = graph.verify();
    const vx::Run run = verified.spawn(options);
    run.wait();
    EXPECT(run.completed() == 10);
}

} // namespace

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    directory = argv[1];
    computes_it_with_any_replicas();
    computes_it_as_tasks_of_a_system();
    what_a_kernel_throws_is_the_cause();
    what_cannot_be_is_refused();
    impossible_names_and_sizes_are_refused_as_such();
    nodes_use_a_gpu(argv[2]);
    std::puts("ok");
}
