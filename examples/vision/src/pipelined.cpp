#include "pipelined.h"

#include <exception>
#include <laxity.h>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "stopwatch.h"

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
    const auto period_ns = static_cast<uint64_t>(1e9 / settings.rate);
    uint32_t replicas = settings.replicas;
    Registry registry;
    Pipeline pipeline;
    Spec spec;

    check(laxity_registry_new(nullptr, registry.out()));
    check(laxity_pipeline_new(name.c_str(), period_ns, pipeline.out()));
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

// The jobs of a node, until it or those before it have no more.
void run_jobs(const Node &node, laxity_node *live, Jitter jitter, std::vector<double> &us)
{
    laxity_job *job;
    laxity_result result = LAXITY_TERMINATED;

    while ((!node.has_more || node.has_more()) &&
           (result = laxity_node_wait(live, LAXITY_FOREVER, &job)) == LAXITY_OK) {
        const Arguments to = arguments(job, node);
        jitter.pause();
        const Stopwatch stopwatch;
        node.work(to);
        us.push_back(stopwatch.us());
        jitter.pause();
        check(laxity_job_complete(job));
    }
    if (result != LAXITY_TERMINATED && result != LAXITY_OK)
        check(result);
}

// The thread of a node. If it fails it ends the whole graph before it lets go of the node, so that its own error is the
// first.
void be(const Node &node, laxity_graph *graph, const Jitter &jitter, std::vector<double> &us, FirstError &error)
{
    LiveNode live;

    try {
        check(laxity_graph_claim(graph, node.name.c_str(), live.out()));
        run_jobs(node, live, jitter, us);
        check(laxity_node_terminate(live.out()));
    } catch (...) {
        error.set(std::current_exception());
        laxity_graph_terminate(graph, nullptr);
    }
}

} // namespace

uint32_t run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log)
{
    LiveGraph live;
    const uint32_t replicas = create(graph, settings, live);
    FirstError error;
    std::vector<std::thread> threads;

    try {
        for (size_t number = 0; number < graph.nodes.size(); number++) {
            threads.emplace_back([&, number] {
                be(graph.nodes[number], live, Jitter(settings.jitter_seed, number), log.node_us[number], error);
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
    return replicas;
}
