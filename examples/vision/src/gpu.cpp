#include "gpu.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "clock.h"

namespace
{

// All processes that share the soft GPU say the same. Seventeen stabilizers of 640x360 with 9 replicas need half of that,
// and only what they allocate is taken from this machine.
constexpr uint64_t MEMORY_BYTES = uint64_t(1) << 30;

// A GPU does not wait for CPUs, nor does an interrupt: where Linux permits it, threads that stand for them run before
// all others, as the soft GPU's server does.
constexpr uint8_t HARDWARE_PRIORITY = 97;

using Arbitration = laxity::Handle<laxity_gpus, laxity_gpus_release>;

Arbitration attach(const std::string &name)
{
    Arbitration arbitration;

    if (!name.empty())
        laxity::check(laxity_gpus_attach(nullptr, name.c_str(), arbitration.out()));
    return arbitration;
}

// A bus of that time, as the study's simulation has it; the paper does not give its speed.
constexpr uint64_t COPY_BYTES_A_SECOND = 6'000'000'000;
// As the paper's GPUSync breaks copies up.
constexpr uint64_t CHUNK_BYTES = 2 << 20;

laxity::Device open(const std::string &name, const laxity_gpus *arbitration, const laxity_system *system,
                    const SystemSettings *scheduling, bool is_timed)
{
    laxity_device_config config = {};

    config.name = name.c_str();
    config.memory = MEMORY_BYTES;
    config.copy_rate = is_timed ? COPY_BYTES_A_SECOND : 0;
    if (scheduling) {
        config.system = system;
        config.cluster = scheduling->cluster;
        config.is_managed = scheduling->tokens > 0;
        config.chunk = CHUNK_BYTES;
    }
    // With an arbitration interrupts are handled as urgently as those that wait for them are.
    config.handling = arbitration ? LAXITY_SERVICE_OWNERS : LAXITY_SERVICE_FIXED;
    config.engines = LAXITY_SERVICE_FIXED;
    config.engines_priority = config.handling_priority = HARDWARE_PRIORITY;
    // Unless the environment names another, the server that was installed with the library.
    if (!getenv("LAXITY_SOFTGPU_SERVER") && access(SOFTGPU_SERVER, X_OK) == 0)
        config.server = SOFTGPU_SERVER;
    try {
        return laxity::Device(config, arbitration);
    } catch (const laxity::Error &error) {
        if (error.result() != LAXITY_ERROR_SCHEDULE)
            throw;
    }
    config.engines = LAXITY_SERVICE_AS_IS;
    if (!arbitration)
        config.handling = LAXITY_SERVICE_AS_IS;
    return laxity::Device(config, arbitration);
}

// This thread, while it fills the GPU's memory. Where a system schedules, it is a task of it meanwhile, with one job.
class Setup
{
public:
    Setup(const laxity::Device &device, const System &system, const SystemSettings *scheduling)
    {
        if (!scheduling) {
            laxity::check(laxity_device_register(device.get(), "set-up", 1, 0, thread_.out()));
            return;
        }
        laxity_task_parameters parameters = {};
        parameters.name = "set-up";
        parameters.cluster = scheduling->cluster;
        parameters.period_ns = PERIOD_NS;
        laxity::check(laxity_task_begin(system.get(), &parameters, task_.out()));
        const laxity_task_job job = { 0, now_ns(), now_ns() + PERIOD_NS };
        laxity::check(laxity_task_release_job(task_.get(), &job));
        laxity::check(laxity_device_register_task(device.get(), "set-up", task_.get(), thread_.out()));
    }

    laxity::Gpu thread() const { return laxity::Gpu(thread_.get()); }

private:
    static constexpr uint64_t PERIOD_NS = 1'000'000'000;

    laxity::Handle<laxity_task, laxity_task_release> task_;
    // Goes first: it holds a token of the task.
    laxity::Handle<laxity_device_thread, laxity_device_thread_release> thread_;
};

} // namespace

std::set<std::string> used_by_gpu(const Graph &graph)
{
    std::set<std::string> objects;

    for (const Node &node : graph.nodes) {
        for (const Access &access : node.accesses) {
            if (node.place == Place::Gpu)
                objects.insert(access.object);
        }
    }
    return objects;
}

size_t kernels(const Graph &graph)
{
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node &node) { return node.place == Place::Gpu; });
}

Gpu::Gpu(const GpuSettings &settings, const Graph &graph, uint32_t replicas, const System &system,
         const SystemSettings *scheduling)
    : arbitration_(attach(settings.arbitration)),
      device_(open(settings.name, arbitration_.get(), system.get(), scheduling, !settings.kernels_ns.empty())),
      releases_early_(settings.releases_early),
      is_timed_(!settings.kernels_ns.empty())
{
    if (is_timed_) {
        auto span_ns = settings.kernels_ns.begin();
        for (const Node &node : graph.nodes) {
            if (node.place == Place::Gpu)
                kernels_[node.name] = std::chrono::nanoseconds(*span_ns++);
        }
        for (const Object &object : graph.objects)
            rings_[object.name].bytes = used_by_gpu(graph).count(object.name) > 0 ? object.bytes : 0;
        return;
    }
    const std::set<std::string> used = used_by_gpu(graph);
    const Setup setup(device_, system, scheduling);

    for (const Object &object : graph.objects) {
        if (used.count(object.name) > 0)
            allocate(object, replicas, setup.thread());
    }
}

std::chrono::nanoseconds Gpu::kernel(const Node &node) const
{
    const auto found = kernels_.find(node.name);

    return found == kernels_.end() ? std::chrono::nanoseconds(0) : found->second;
}

const Gpu::Ring *Gpu::ring(const std::string &object) const
{
    const auto found = rings_.find(object);

    return found == rings_.end() ? nullptr : &found->second;
}

// As many values as the live graph has of it: a delay of depth M keeps M more than there are replicas.
void Gpu::allocate(const Object &object, uint32_t replicas, const laxity::Gpu &thread)
{
    std::vector<uint8_t> initial = object.initial;
    Ring &ring = rings_[object.name];

    initial.resize(object.bytes);
    ring.bytes = object.bytes;
    for (uint32_t value = 0; value < replicas + object.depth; value++) {
        ring.values.emplace_back(device_, object.bytes);
        // What is no delay is written before it is read.
        if (object.depth > 0)
            thread.copy_in(ring.values.back(), initial.data(), object.bytes);
    }
}

GpuNode::GpuNode(const Gpu &gpu, const Node &node)
    : node_(node), releases_early_(gpu.releases_early()), is_timed_(gpu.is_timed()), kernel_(gpu.kernel(node))
{
    if (is_timed_) {
        for (const Access &access : node.accesses) {
            const size_t bytes = gpu.ring(access.object)->bytes;
            if (node.place == Place::Cpu && bytes > 0)
                (access.is_write ? copies_in_ : copies_out_).push_back(bytes);
        }
        return;
    }
    for (size_t position = 0; position < node.accesses.size(); position++) {
        const Access &access = node.accesses[position];
        const Gpu::Ring *ring = gpu.ring(access.object);
        if (!ring)
            continue;
        const size_t copied = node.place == Place::Cpu ? ring->bytes : 0;
        parameters_.push_back({ position, access.is_write, access.ago, ring, std::vector<uint8_t>(copied) });
    }
}

double GpuNode::run(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses)
{
    if (is_timed_)
        return work_and_occupy(thread, std::move(addresses));
    return node_.place == Place::Gpu ? launch(thread, job, std::move(addresses))
                                     : work(thread, job, std::move(addresses));
}

// As a GPU kernel, which runs on a thread of the soft GPU.
double GpuNode::launch(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses) const
{
    double cpu_us = 0;

    thread.launch([&](const laxity::View &view) {
        for (const Parameter &parameter : parameters_) {
            const laxity::Buffer &buffer = parameter.ring->of(job, parameter.ago);
            // Arguments keeps apart what may be written.
            addresses[parameter.access] =
                parameter.is_write ? view.write(buffer) : const_cast<void *>(view.read(buffer));
        }
        const Stopwatch stopwatch;
        node_.work(Arguments(std::move(addresses)));
        cpu_us = stopwatch.cpu_us();
    });
    return cpu_us;
}

// The CPU does the work between two halves of the kernel, as a node does that launches one kernel after the other: so it
// holds its token all the while. The GPU is only busy, and a CPU copies nothing.
double GpuNode::work_and_occupy(const laxity::Gpu &thread, std::vector<void *> addresses) const
{
    const auto occupy = [&thread](std::chrono::nanoseconds span) {
        if (span.count() > 0)
            laxity::check(laxity_device_launch_timed(thread.get(), static_cast<uint64_t>(span.count())));
    };

    for (size_t bytes : copies_out_)
        laxity::check(laxity_device_copy_timed(thread.get(), LAXITY_ENGINE_COPY_OUT, bytes));
    if (releases_early_ && !copies_out_.empty())
        thread.release();
    occupy(kernel_ / 2);
    const Stopwatch stopwatch;
    node_.work(Arguments(std::move(addresses)));
    const double cpu_us = stopwatch.cpu_us();
    occupy(kernel_ - kernel_ / 2);
    for (size_t bytes : copies_in_)
        laxity::check(laxity_device_copy_timed(thread.get(), LAXITY_ENGINE_COPY_IN, bytes));
    return cpu_us;
}

double GpuNode::work(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses)
{
    for (Parameter &parameter : parameters_) {
        addresses[parameter.access] = parameter.copy.data();
        if (!parameter.is_write)
            thread.copy_out(parameter.ring->of(job, parameter.ago), parameter.copy.data(), parameter.copy.size());
    }
    if (releases_early_)
        thread.release();

    const Stopwatch stopwatch;
    node_.work(Arguments(std::move(addresses)));
    const double cpu_us = stopwatch.cpu_us();

    for (const Parameter &parameter : parameters_) {
        if (parameter.is_write)
            thread.copy_in(parameter.ring->of(job, 0), parameter.copy.data(), parameter.copy.size());
    }
    return cpu_us;
}
