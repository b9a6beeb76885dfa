#include "pipelined.h"

#include <algorithm>
#include <exception>
#include <laxity.h>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "clock.h"

namespace
{

void check(laxity_result result)
{
    if (result != LAXITY_OK)
        throw std::runtime_error(laxity_last_error()->message);
}

// Releases what Laxity lends.
template <typename T, laxity_result (*release)(T **)> class Handle
{
public:
    Handle() = default;
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { release(&handle_); }

    operator T *() const { return handle_; }
    T **out() { return &handle_; }

private:
    T *handle_ = nullptr;
};

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

void describe(laxity_pipeline *pipeline, const Graph &graph)
{
    for (const Object &object : graph.objects) {
        const void *initial = object.initial.empty() ? nullptr : object.initial.data();
        check(object.depth == 0
                  ? laxity_pipeline_object(pipeline, object.name.c_str(), object.bytes)
                  : laxity_pipeline_delay(pipeline, object.name.c_str(), object.bytes, object.depth, initial));
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
    describe(pipeline, graph);
    if (replicas == 0)
        check(laxity_pipeline_depth(pipeline, &replicas));
    check(laxity_pipeline_build(pipeline, replicas, spec.out()));
    check(laxity_registry_create(registry, spec, live.out()));
    return replicas;
}

// Where the objects of a job are.
Arguments arguments(laxity_job *job, const Node &node)
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
    return Arguments(std::move(addresses));
}

// The thread of a node.
class Worker
{
public:
    Worker(const Graph &graph, size_t number, const PipelineSettings &settings, Log &log)
        : number_(number),
          node_(graph.nodes[number]),
          settings_(settings),
          jitter_(settings.jitter_seed, number),
          times_(log.node_times[number]),
          completions_ns_(number + 1 == graph.nodes.size() ? &log.completions_ns : nullptr)
    {
    }

    // If it fails it ends the whole graph before it lets go of the node, so that its own error is the first.
    void be(laxity_graph *graph, FirstError &error)
    {
        LiveNode live;

        try {
            check(laxity_graph_claim(graph, node_.name.c_str(), live.out()));
            schedule(live);
            if (node_.has_more && settings_.start_ns)
                check(laxity_node_set_releasing(live, LAXITY_RELEASING_ON_TIME));
            run_jobs(live);
            check(laxity_node_terminate(live.out()));
        } catch (...) {
            error.set(std::current_exception());
            laxity_graph_terminate(graph, nullptr);
        }
    }

private:
    void schedule(laxity_node *live) const
    {
        const Scheduling &scheduling = settings_.scheduling;

        if (scheduling.policy == Scheduling::Policy::Fifo)
            check(laxity_node_schedule_fifo(live, scheduling.base_priority));
        if (scheduling.policy == Scheduling::Policy::Deadline)
            check(laxity_node_schedule_deadline(live, scheduling.runtimes_ns.at(number_)));
    }

    // The jobs of the node, until it or those before it have no more.
    void run_jobs(laxity_node *live)
    {
        laxity_job *job;
        laxity_result result;

        while ((result = wait(live, &job)) == LAXITY_OK) {
            const Arguments to = arguments(job, node_);
            jitter_.pause();
            const Stopwatch stopwatch;
            node_.work(to);
            times_.add(stopwatch);
            if (completions_ns_)
                completions_ns_->push_back(now_ns());
            jitter_.pause();
            check(laxity_job_complete(job));
        }
        if (result != LAXITY_TERMINATED)
            check(result);
    }

    // A source looks up now and then, as Ctrl-C is no token.
    laxity_result wait(laxity_node *live, laxity_job **job) const
    {
        constexpr uint64_t LOOK_UP_NS = 100'000'000;
        uint64_t now;

        if (!node_.has_more)
            return laxity_node_wait(live, LAXITY_FOREVER, job);
        while (node_.has_more() && (now = now_ns()) < settings_.end_ns) {
            const laxity_result result = laxity_node_wait(live, std::min(LOOK_UP_NS, settings_.end_ns - now), job);
            if (result != LAXITY_TIMED_OUT)
                return result;
        }
        return LAXITY_TERMINATED;
    }

    size_t number_;
    const Node &node_;
    const PipelineSettings &settings_;
    Jitter jitter_;
    NodeTimes &times_;
    std::vector<uint64_t> *completions_ns_; // of the last node alone
};

} // namespace

PipelineRun run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log)
{
    LiveGraph live;
    PipelineRun run = { create(graph, settings, live), 0 };
    FirstError error;
    std::vector<std::thread> threads;

    if (settings.start_ns)
        check(laxity_graph_start(live, *settings.start_ns, nullptr));
    try {
        for (size_t number = 0; number < graph.nodes.size(); number++) {
            threads.emplace_back([&, number] {
                Worker(graph, number, settings, log).be(live, error);
                if (graph.nodes[number].has_more)
                    run.source_end_ns = now_ns();
            });
        }
    } catch (const std::system_error &) {
        // Linux grants no more threads: those that there are end, and are waited for.
        error.set(std::current_exception());
        laxity_graph_terminate(live, nullptr);
    }
    for (std::thread &thread : threads)
        thread.join();
    error.rethrow();
    for (size_t job = 0; settings.start_ns && job < log.completions_ns.size(); job++)
        log.releases_ns.push_back(*settings.start_ns + job * settings.period_ns);
    return run;
}
