#include "pipelined.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

#include "clock.h"
#include "gate.h"
#include "laxity_handle.h"

namespace
{

using Registry = Handle<laxity_registry, laxity_registry_release>;
using Pipeline = Handle<laxity_pipeline, laxity_pipeline_release>;
using Spec = Handle<laxity_spec, laxity_spec_release>;
using LiveGraph = Handle<laxity_graph, laxity_graph_release>;
using LiveNode = Handle<laxity_node, laxity_node_release>;

// Random pauses, or none without a seed. Most are short; some are long enough for others to be a frame ahead, if
// nothing but time kept them from it.
class Jitter
{
public:
    Jitter(std::optional<uint64_t> seed, size_t node) : is_on_(seed.has_value()), random_(seed.value_or(0) + node) {}

    void pause()
    {
        if (!is_on_ || random_() % 4 != 0)
            return;
        const uint64_t longest_us = random_() % 16 == 0 ? 20'000 : 1'000;
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % longest_us));
    }

private:
    bool is_on_;
    std::mt19937_64 random_;
};

// The first error of all threads.
class FirstError
{
public:
    void set(std::exception_ptr error)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_)
            error_ = error;
    }

    void rethrow() const
    {
        if (error_)
            std::rethrow_exception(error_);
    }

private:
    std::mutex mutex_;
    std::exception_ptr error_;
};

// Objects `elsewhere` are not in the memory of the live graph, which sees to it all the same who uses them when.
void describe(laxity_pipeline *pipeline, const Graph &graph, const std::set<std::string> &elsewhere)
{
    for (const Object &object : graph.objects) {
        const bool is_here = elsewhere.count(object.name) == 0;
        const size_t bytes = is_here ? object.bytes : 1;
        const void *initial = is_here && !object.initial.empty() ? object.initial.data() : nullptr;
        check(object.depth == 0 ? laxity_pipeline_object(pipeline, object.name.c_str(), bytes)
                                : laxity_pipeline_delay(pipeline, object.name.c_str(), bytes, object.depth, initial));
    }
    for (const Node &node : graph.nodes) {
        std::vector<laxity_parameter> parameters;
        for (const Access &access : node.accesses)
            parameters.push_back({ access.object.c_str(), !access.is_write, access.is_write, access.ago });
        check(laxity_pipeline_node(pipeline, node.name.c_str(), parameters.data(), parameters.size()));
    }
}

// Creates the graph, under a name of this process, and returns the number of replicas.
uint32_t create(const Graph &graph, const PipelineSettings &settings, LiveGraph &live)
{
    const std::string name = "stabilizer-" + std::to_string(getpid());
    uint32_t replicas = settings.replicas;
    Registry registry;
    Pipeline pipeline;
    Spec spec;

    check(laxity_registry_new(nullptr, registry.out()));
    check(laxity_pipeline_new(name.c_str(), settings.period_ns, pipeline.out()));
    describe(pipeline, graph, settings.gpu ? used_by_gpu(graph) : std::set<std::string>());
    if (replicas == 0)
        check(laxity_pipeline_depth(pipeline, &replicas));
    check(laxity_pipeline_build(pipeline, replicas, spec.out()));
    check(laxity_registry_create(registry, spec, live.out()));
    return replicas;
}

// Where the objects of a job are.
std::vector<void *> addresses(laxity_job *job, const Node &node)
{
    std::vector<void *> addresses;

    for (const Access &access : node.accesses) {
        void *written = nullptr;
        const void *read = nullptr;
        check(access.is_write ? laxity_job_write(job, access.object.c_str(), &written, nullptr)
                              : laxity_job_read(job, access.object.c_str(), access.ago, &read, nullptr));
        // Arguments keeps apart what may be written.
        addresses.push_back(access.is_write ? written : const_cast<void *>(read));
    }
    return addresses;
}

// When the graph starts, and when its first node stops, on CLOCK_MONOTONIC.
struct Start {
    uint64_t start_ns, end_ns;
};

// The thread of a node.
class Worker
{
public:
    // Without `gpu` the CPU does all of the work.
    Worker(const Graph &graph, size_t number, const PipelineSettings &settings, const Gpu *gpu, Log &log)
        : number_(number),
          node_(graph.nodes[number]),
          settings_(settings),
          gpu_(gpu),
          jitter_(settings.jitter_seed, number),
          times_(log.node_times[number]),
          completions_ns_(number + 1 == graph.nodes.size() ? &log.completions_ns : nullptr)
    {
    }

    // If it fails it ends the whole graph before it lets go of the node, so that its own error is the first.
    void be(laxity_graph *graph, const Start &start, Gate &gate, FirstError &error)
    {
        LiveNode live;
        const auto attempt = [&](auto step) {
            try {
                step();
            } catch (...) {
                error.set(std::current_exception());
                laxity_graph_terminate(graph, nullptr);
            }
        };

        attempt([&] { get_ready(graph, live); });
        gate.pass();
        attempt([&] {
            if (live)
                run_jobs(live, start);
            check(laxity_node_terminate(live.out()));
        });
    }

private:
    void get_ready(laxity_graph *graph, LiveNode &live)
    {
        check(laxity_graph_claim(graph, node_.name.c_str(), live.out()));
        schedule(live);
        if (gpu_)
            gpu_thread_.emplace(*gpu_, node_);
    }

    void schedule(laxity_node *live) const
    {
        const Scheduling &scheduling = settings_.scheduling;

        if (scheduling.policy == Scheduling::Policy::Fifo)
            check(laxity_node_schedule_fifo(live, scheduling.base_priority));
        if (scheduling.policy == Scheduling::Policy::Deadline)
            check(laxity_node_schedule_deadline(live, scheduling.runtimes_ns.at(number_)));
    }

    // The jobs of the node, until it or those before it have no more.
    void run_jobs(laxity_node *live, const Start &start)
    {
        laxity_job *job;
        laxity_result result;

        if (node_.has_more && settings_.is_in_real_time)
            check(laxity_node_set_releasing(live, LAXITY_RELEASING_ON_TIME));
        uint64_t cpu_ns = thread_cpu_ns();
        while ((result = wait(live, start, &job)) == LAXITY_OK) {
            jitter_.pause();
            work(job);
            if (completions_ns_)
                completions_ns_->push_back(now_ns());
            jitter_.pause();
            check(laxity_job_complete(job));
            const uint64_t cpu_before_ns = std::exchange(cpu_ns, thread_cpu_ns());
            times_.thread_us.push_back(static_cast<double>(cpu_ns - cpu_before_ns) / 1e3);
        }
        if (result != LAXITY_TERMINATED)
            check(result);
    }

    void work(laxity_job *job)
    {
        const Stopwatch stopwatch;
        uint64_t index, deadline_ns;

        if (!gpu_thread_) {
            node_.work(Arguments(addresses(job, node_)));
            times_.add(stopwatch.us(), stopwatch.cpu_us());
            return;
        }
        check(laxity_job_index(job, &index));
        check(laxity_job_times(job, nullptr, &deadline_ns));
        const double cpu_us = gpu_thread_->run(index, deadline_ns, addresses(job, node_));
        times_.add(stopwatch.us(), cpu_us);
    }

    // A source looks up now and then, as Ctrl-C is no token.
    laxity_result wait(laxity_node *live, const Start &start, laxity_job **job) const
    {
        constexpr uint64_t LOOK_UP_NS = 100'000'000;
        uint64_t now;

        if (!node_.has_more)
            return laxity_node_wait(live, LAXITY_FOREVER, job);
        while (node_.has_more() && (now = now_ns()) < start.end_ns) {
            const laxity_result result = laxity_node_wait(live, std::min(LOOK_UP_NS, start.end_ns - now), job);
            if (result != LAXITY_TIMED_OUT)
                return result;
        }
        return LAXITY_TERMINATED;
    }

    size_t number_;
    const Node &node_;
    const PipelineSettings &settings_;
    const Gpu *gpu_;
    std::optional<GpuThread> gpu_thread_;
    Jitter jitter_;
    NodeTimes &times_;
    std::vector<uint64_t> *completions_ns_; // of the last node alone
};

// To be called when all threads are ready.
Start start(laxity_graph *graph, const PipelineSettings &settings)
{
    const uint64_t now = now_ns();
    const uint64_t start_ns = settings.start_ns.value_or(now);

    if (start_ns < now)
        throw std::runtime_error("the start at " + std::to_string(start_ns) + " ns was " +
                                 std::to_string((now - start_ns) / 1'000'000) +
                                 " ms before all was ready; start later");
    if (settings.is_in_real_time)
        check(laxity_graph_start(graph, start_ns, nullptr));
    return { start_ns, settings.span_ns < UINT64_MAX - start_ns ? start_ns + settings.span_ns : UINT64_MAX };
}

} // namespace

PipelineRun run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log)
{
    LiveGraph live;
    PipelineRun run = { create(graph, settings, live), 0, 0, 0, 0 };
    std::optional<Gpu> gpu;
    Start times = {};
    Gate gate;
    FirstError error;
    std::vector<std::thread> threads;

    if (settings.gpu)
        gpu.emplace(*settings.gpu, graph, run.replicas);
    try {
        for (size_t number = 0; number < graph.nodes.size(); number++) {
            threads.emplace_back([&, number] {
                Worker(graph, number, settings, gpu ? &*gpu : nullptr, log).be(live, times, gate, error);
                if (graph.nodes[number].has_more)
                    run.source_end_ns = now_ns();
            });
        }
        gate.wait_for(threads.size());
        times = start(live, settings);
    } catch (...) {
        // For instance, Linux grants no more threads: those that there are end, and are waited for.
        error.set(std::current_exception());
        laxity_graph_terminate(live, nullptr);
    }
    const Meter meter;
    gate.open();
    for (std::thread &thread : threads)
        thread.join();
    error.rethrow();
    run.start_ns = times.start_ns;
    run.seconds = meter.seconds();
    run.cpu_seconds = meter.cpu_seconds();
    for (size_t job = 0; settings.is_in_real_time && job < log.completions_ns.size(); job++)
        log.releases_ns.push_back(times.start_ns + job * settings.period_ns);
    return run;
}
