#include "pipelined.h"

#include <chrono>
#include <deque>
#include <laxity/vx.hpp>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "clock.h"
#include "memory.h"

namespace
{

namespace vx = laxity::vx;
using Data = vx::Object<vx::Bytes>;

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

// What a node does in each frame, on a thread of its own.
class Worker
{
public:
    // `data` are the node's objects, in the order of its accesses.
    Worker(const Node &node, std::vector<Data> data, const Jitter &jitter, NodeTimes &times)
        : node_(node), data_(std::move(data)), jitter_(jitter), times_(times)
    {
    }

    // From now on; otherwise the CPU does all of the work.
    void use(const Gpu &gpu) { gpu_node_.emplace(gpu, node_); }

    void run(vx::Job &job)
    {
        jitter_.pause();
        const Stopwatch stopwatch;
        const double cpu_us = work(job);
        times_.us.push_back(stopwatch.us());
        times_.thread_us.push_back(stopwatch.cpu_us());
        times_.cpu_us.push_back(cpu_us < 0 ? times_.thread_us.back() : cpu_us);
        jitter_.pause();
    }

private:
    // Returns how long a CPU worked in microseconds, negative if this thread did it all.
    double work(vx::Job &job)
    {
        if (gpu_node_)
            return gpu_node_->run(job.gpu(), job.index(), addresses(job));
        node_.work(Arguments(addresses(job)));
        return -1;
    }

    std::vector<void *> addresses(vx::Job &job) const
    {
        std::vector<void *> addresses;

        for (size_t position = 0; position < data_.size(); position++) {
            const Access &access = node_.accesses[position];
            // Arguments keeps apart what may be written.
            addresses.push_back(access.is_write ? job.write(data_[position]).data()
                                                : const_cast<uint8_t *>(job.read(data_[position], access.ago).data()));
        }
        return addresses;
    }

    const Node &node_;
    std::vector<Data> data_;
    Jitter jitter_;
    NodeTimes &times_;
    std::optional<GpuNode> gpu_node_;
};

// The first node, which settles how long the graph runs.
class Feeder
{
public:
    Feeder(const Node &node, Worker &worker, uint64_t span_ns) : node_(node), worker_(worker), span_ns_(span_ns) {}

    // Answers whether there was another frame.
    bool run(vx::Job &job)
    {
        if (job.index() == 0)
            laxity::check(laxity_vx_job_times(job.get(), &start_ns_, nullptr));
        end_ns_ = now_ns();
        if (!node_.has_more() || (end_ns_ > start_ns_ && end_ns_ - start_ns_ >= span_ns_))
            return false;
        worker_.run(job);
        return true;
    }

    // On CLOCK_MONOTONIC, when the graph has ended: when the first frame was released, and when it last looked for one.
    uint64_t start_ns() const { return start_ns_; }
    uint64_t end_ns() const { return end_ns_; }

private:
    const Node &node_;
    Worker &worker_;
    uint64_t span_ns_;
    uint64_t start_ns_ = 0, end_ns_ = 0;
};

// Objects `elsewhere` are not in the memory of the live graph. It orders their uses all the same.
std::map<std::string, Data> add_objects(vx::Graph &live, const Graph &graph, const std::set<std::string> &elsewhere)
{
    std::map<std::string, Data> data;

    for (const Object &object : graph.objects) {
        const bool is_here = elsewhere.count(object.name) == 0;
        const auto fill = [&](laxity::Span<uint8_t> bytes) {
            if (is_here)
                std::copy(object.initial.begin(), object.initial.end(), bytes.data());
        };
        const vx::Bytes bytes(is_here ? object.bytes : 1);
        data.emplace(object.name, live.delay_from(object.name, bytes, object.depth + 1, fill));
    }
    return data;
}

vx::Policy policy_of(const Scheduling &scheduling, const System &system)
{
    switch (scheduling.policy) {
    case Scheduling::Policy::Fifo:
        return vx::fifo(scheduling.base_priority);
    case Scheduling::Policy::Deadline:
        return vx::deadline();
    case Scheduling::Policy::Laxity:
        return vx::scheduled_by(system.get(), scheduling.system->cluster);
    default:
        return vx::other();
    }
}

// The graph with its nodes, and what they have beside it.
class Pipeline
{
public:
    Pipeline(const Graph &graph, const PipelineSettings &settings, Log &log);

    // With these replicas.
    PipelineRun run(uint32_t replicas);

    // The number of nodes on its longest path.
    uint32_t depth() const { return verified_->depth(); }

private:
    void add(vx::Graph &live, size_t number, const std::map<std::string, Data> &data, Log &log);
    vx::Options options(uint32_t replicas, const System &system) const;
    void refuse_late_start() const;

    const Graph &graph_;
    const PipelineSettings &settings_;
    // Neither moves: the nodes of the live graph refer to them.
    std::deque<Worker> workers_;
    std::optional<Feeder> feeder_;
    std::optional<vx::Verified> verified_;
    Log &log_;
};

Pipeline::Pipeline(const Graph &graph, const PipelineSettings &settings, Log &log)
    : graph_(graph), settings_(settings), log_(log)
{
    vx::Graph live("stabilizer-" + std::to_string(getpid()));
    const bool is_in_gpu = settings.gpu && settings.gpu->kernels_ns.empty();
    const std::set<std::string> elsewhere = is_in_gpu ? used_by_gpu(graph) : std::set<std::string>();
    const std::map<std::string, Data> data = add_objects(live, graph, elsewhere);

    for (size_t number = 0; number < graph.nodes.size(); number++)
        add(live, number, data, log);
    verified_.emplace(live.verify());
}

// The first node is OpenVX's input callback, the last one its output callback.
void Pipeline::add(vx::Graph &live, size_t number, const std::map<std::string, Data> &data, Log &log)
{
    const Node &node = graph_.nodes[number];
    const Scheduling &scheduling = settings_.scheduling;
    const bool is_deadline = scheduling.policy == Scheduling::Policy::Deadline;
    const std::chrono::nanoseconds budget(is_deadline ? scheduling.runtimes_ns.at(number) : 0);
    std::vector<vx::Parameter> parameters;
    std::vector<Data> of_node;

    for (const Access &access : node.accesses) {
        const Data &object = data.at(access.object);
        parameters.push_back(access.is_write ? vx::output(object) : vx::past(object, access.ago));
        of_node.push_back(object);
    }
    Worker &worker =
        workers_.emplace_back(node, std::move(of_node), Jitter(settings_.jitter_seed, number), log.node_times[number]);
    const auto run = [&worker](vx::Job &job) { worker.run(job); };
    if (node.has_more) {
        Feeder &feeder = feeder_.emplace(node, worker, settings_.span_ns);
        live.input(
            parameters, [&feeder](vx::Job &job) { return feeder.run(job); }, budget);
    } else if (number + 1 == graph_.nodes.size()) {
        live.output(parameters, run, budget);
    } else {
        live.node(node.name, parameters, run, budget);
    }
}

vx::Options Pipeline::options(uint32_t replicas, const System &system) const
{
    vx::Options options;

    // Otherwise all frames are due at once, and come when there is room.
    options.period = std::chrono::nanoseconds(settings_.is_in_real_time ? settings_.period_ns : 1);
    options.policy = policy_of(settings_.scheduling, system);
    options.replicas = replicas;
    options.trace = settings_.scheduling.trace;
    options.start_ns = settings_.start_ns.value_or(0);
    return options;
}

void Pipeline::refuse_late_start() const
{
    const uint64_t now = now_ns();

    if (settings_.start_ns && *settings_.start_ns < now)
        throw std::runtime_error("the start at " + std::to_string(*settings_.start_ns) + " ns was " +
                                 std::to_string((now - *settings_.start_ns) / 1'000'000) +
                                 " ms before all was ready; start later");
}

PipelineRun Pipeline::run(uint32_t replicas)
{
    using namespace std::chrono_literals;
    const SystemSettings *scheduling = settings_.scheduling.system ? &*settings_.scheduling.system : nullptr;
    const System system = scheduling ? join(*scheduling) : System();
    std::optional<Gpu> gpu;
    vx::Options spawned = options(replicas, system);

    if (settings_.gpu) {
        gpu.emplace(*settings_.gpu, graph_, replicas, system, scheduling);
        spawned.gpu = &gpu->device();
        for (Worker &worker : workers_)
            worker.use(*gpu);
    }
    // Only now: with a limit Linux would refuse the soft GPU's memory, most of which others use.
    const bool is_memory_locked = settings_.is_in_real_time && lock_memory();
    refuse_late_start();
    const Meter meter;
    const vx::Run run = verified_->spawn(spawned);
    refuse_late_start();
    while (!run.wait_for(100ms)) {
        // A source that waits for its next release does not look for Ctrl-C.
        if (settings_.is_in_real_time && *settings_.stop)
            run.stop();
    }
    for (const vx::Frame &frame : run.frames()) {
        log_.releases_ns.push_back(frame.release_ns);
        log_.completions_ns.push_back(frame.completion_ns);
    }
    // If it was ended before the start there was none.
    const uint64_t start_ns = feeder_->start_ns() > 0 ? feeder_->start_ns() : now_ns();
    const double seconds = static_cast<double>(now_ns() - start_ns) / 1e9;
    return { replicas, start_ns, feeder_->end_ns(), seconds, meter.cpu_seconds(), is_memory_locked };
}

} // namespace

PipelineRun run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log)
{
    Pipeline pipeline(graph, settings, log);

    return pipeline.run(settings.replicas > 0 ? settings.replicas : pipeline.depth());
}
