// What a program in C++ may do wrongly, or could believe to be wrong. Takes a directory for names, checks the results, and
// prints "ok". Built with sanitizers where there are some.

#include "expect.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <laxity/kernel.hpp>
#include <laxity/vx.hpp>
#include <laxity/workload.hpp>
#include <pthread.h>
#include <thread>

namespace vx = laxity::vx;
using namespace std::chrono_literals;

namespace
{

const char *directory;

// A run whose kernel uses memory that its graph owns, also while it is being ended.
vx::Run counting(const char *name)
{
    vx::Graph graph(name, directory);
    std::vector<uint64_t> counts(1000);
    const auto object = graph.object("count", vx::value<uint64_t>());

    graph.node("count", { vx::output(object) }, [=](vx::Job &job) mutable {
        job.write(object) = counts[job.index() % counts.size()]++;
        std::this_thread::sleep_for(2ms);
        job.write(object) += counts[5];
    });
    return graph.verify().spawn({ 1ms });
}

void a_run_is_ended_before_another_one_takes_its_place()
{
    vx::Run run = counting("one");
    for (int time = 0; time < 6; time++) {
        std::this_thread::sleep_for(5ms);
        run = counting(time % 2 ? "one" : "two");
    }
    vx::Run other = counting("three");
    const laxity_vx_run *handle = other.get();
    run = std::move(other);
    EXPECT(run.get() == handle && other.get() == nullptr);
    // Its name is free: nothing lives on in `other`.
    vx::Run again = counting("one");
    vx::Run &same = again;
    again = std::move(same);
    EXPECT(again.wait_for_frames(1) >= 1);
}

void objects_of_other_graphs_are_refused()
{
    vx::Graph first("first", directory), second("second", directory);
    const auto large = first.object("large", vx::image<uint8_t>(4096, 4096));
    const auto small = second.object("small", vx::value<uint8_t>());
    const auto refused = thrown<laxity::Error>([&] { second.node("n", { vx::output(large) }, [](vx::Job &) {}); });

    EXPECT(refused.result() == LAXITY_ERROR_NO_OBJECT && refused.node() == "n");
    EXPECT(std::strstr(refused.what(), "is one of another graph") && std::strstr(refused.what(), "VX_ERROR_INVALID_SCOPE"));
    // Nor can its views reach beyond an object of this graph that has another size.
    const vx::Object<vx::Matrix<uint8_t>> wrong(small.number(), vx::image<uint8_t>(4096, 4096));
    second.node("n", { vx::output(small) }, [=](vx::Job &job) {
        const auto of_large = thrown<laxity::Error>([&] { job.write(large); });
        EXPECT(of_large.result() == LAXITY_ERROR_ACCESS);
        const auto of_wrong = thrown<laxity::Error>([&] { job.write(wrong); });
        EXPECT(std::strstr(of_wrong.what(), "has 1 bytes and not 16777216"));
        job.write(small) = 1;
    });
    second.output({ vx::input(small) }, [=](vx::Job &job) {
        const auto of_wrong = thrown<laxity::Error>([&] { job.read(wrong); });
        EXPECT(of_wrong.result() == LAXITY_ERROR_NO_OBJECT);
        EXPECT(job.read(small) == 1);
    });
    vx::Options options{ 1ms };
    options.frames = 2;
    second.verify().spawn(options).wait();
}

void negative_spans_are_refused(const char *file)
{
    vx::Graph graph("spans", directory);
    const auto of_budget = thrown<laxity::Error>([&] { graph.node("n", {}, [](vx::Job &) {}, -5ns); });
    EXPECT(of_budget.result() == LAXITY_ERROR_VALUE);
    EXPECT(!std::strcmp(of_budget.what(), "the budget of node n is -5 ns; make it 0 ns or longer"));
    thrown<laxity::Error>([&] { graph.input({}, [](vx::Job &) { return true; }, -5ns); });
    thrown<laxity::Error>([&] { graph.output({}, [](vx::Job &) {}, -5ns); });
    graph.node("n", {}, [](vx::Job &job) {
        const laxity::Gpu none(nullptr);
        const auto of_launch = thrown<laxity::Error>([&] { none.launch([](const laxity::View &) {}, -1ns); });
        EXPECT(std::strstr(of_launch.what(), "the duration of a launch is -1 ns") && job.index() < 1'000'000);
    });
    const vx::Verified verified = graph.verify();
    vx::Options options;
    const auto refused = [&](const char *what) {
        const auto error = thrown<laxity::Error>([&] { verified.spawn(options); });
        EXPECT(error.result() == LAXITY_ERROR_VALUE && std::strstr(error.what(), what));
        options = { 1ms };
    };
    options.period = -1ms;
    refused("the period is -1000000 ns");
    options.duration = -1ms;
    refused("the duration is -1000000 ns");
    options.phase = -1ms;
    refused("the phase is -1000000 ns");
    options.policy = vx::deadline(-1ms);
    refused("the default budget is -1000000 ns");
    const vx::Run run = verified.spawn({ 1ms });
    // As the standard library's, it returns at once.
    EXPECT(!run.wait_for(-1ns));
    laxity::Workload workload(file);
    const auto of_run = thrown<laxity::Error>([&] { workload.run(-1s); });
    EXPECT(std::strstr(of_run.what(), "the duration is -1000000000 ns"));
}

void a_graph_that_was_verified_is_used_up()
{
    vx::Graph graph("once", directory);
    const auto object = graph.object("count", vx::value<uint64_t>());

    graph.node("count", { vx::output(object) }, [](vx::Job &) {});
    const vx::Verified verified = graph.verify();
    for (const auto &error : { thrown<laxity::Error>([&] { graph.verify(); }),
                               thrown<laxity::Error>([&] { graph.object("more", vx::value<uint64_t>()); }),
                               thrown<laxity::Error>([&] { graph.node("n", {}, [](vx::Job &) {}); }) }) {
        EXPECT(error.result() == LAXITY_ERROR_NULL);
        EXPECT(std::strstr(error.what(), "its description is used up; spawn what verify() returned"));
    }
    EXPECT(verified.depth() >= 1);
}

// The thread that stops a run may come before it.
void a_stop_before_a_run_ends_it(const char *file)
{
    laxity::Workload workload(file);
    const auto completed = [&](std::chrono::nanoseconds duration) {
        workload.run(duration, LAXITY_SCHEDULER_OTHER);
        return workload.results().at(0).completed;
    };

    const uint64_t all = completed(200ms);
    workload.stop();
    EXPECT(completed(20s) < 20 * all);
    EXPECT(completed(200ms) == all);
}

// The thread stays where it is, as do those of below.
void a_body_that_ends_its_thread_ends_the_run(const char *file)
{
    laxity::Workload workload(file);

    workload.bind("camera", [](laxity::Job &job) {
        if (job.index() == 2)
            pthread_exit(nullptr);
    });
    const auto error = thrown<laxity::Error>([&] { workload.run(300ms, LAXITY_SCHEDULER_OTHER); });
    EXPECT(error.result() == LAXITY_ERROR_CODE);
    EXPECT(std::strstr(error.what(), "job 2: its code let an exception escape, or called pthread_exit"));
    EXPECT(!std::strstr(error.what(), "std::exception"));
}

// An exception leaves a function that was bound in C's way: nothing that could tell its text is built into the program.
int throws(laxity_code_call *call)
{
    if (call->job == 2)
        throw 1;
    return 0;
}

// Last: the thread stays where it is.
void an_exception_that_escapes_ends_the_run(const char *file)
{
    laxity::Handle<laxity_workload, laxity_workload_release> workload;
    laxity_run_options options = {};

    options.duration_ns = 300'000'000;
    options.scheduler = LAXITY_SCHEDULER_OTHER;
    laxity::check(laxity_workload_load(file, workload.out()));
    laxity::check(laxity_workload_bind(workload.get(), "camera", throws, nullptr, false));
    const auto error = thrown<laxity::Error>([&] { laxity::check(laxity_workload_run(workload.get(), &options)); });
    EXPECT(error.result() == LAXITY_ERROR_CODE);
    EXPECT(std::strstr(error.what(), "task \"camera\": job 2: its code let an exception escape"));
}

} // namespace

int main(int argc, char **argv)
{
    EXPECT(argc == 3);
    directory = argv[1];
    a_run_is_ended_before_another_one_takes_its_place();
    objects_of_other_graphs_are_refused();
    negative_spans_are_refused(argv[2]);
    a_graph_that_was_verified_is_used_up();
    a_stop_before_a_run_ends_it(argv[2]);
    a_body_that_ends_its_thread_ends_the_run(argv[2]);
    an_exception_that_escapes_ends_the_run(argv[2]);
    std::puts("ok");
}
