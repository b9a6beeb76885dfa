#include "gpu.h"

#include <algorithm>
#include <exception>
#include <sched.h>
#include <unistd.h>

#include "clock.h"

namespace
{

// All processes that share the soft GPU say the same. Memory that nobody uses costs nothing.
constexpr uint64_t MEMORY_BYTES = uint64_t(8) << 30;

// A GPU does not wait for CPUs, nor does an interrupt: where Linux permits it, threads that stand for them run before
// all others.
constexpr uint8_t HARDWARE_PRIORITY = 98;

// The priority of this thread under SCHED_FIFO, 0 otherwise.
uint8_t priority_of_thread()
{
    sched_param parameters = {};

    if (sched_getscheduler(0) != SCHED_FIFO || sched_getparam(0, &parameters) != 0)
        return 0;
    return static_cast<uint8_t>(parameters.sched_priority);
}

// Runs the calling thread as hardware for as long as it is there, if Linux permits that, and with it what it starts:
// the server of the soft GPU.
class AsHardware
{
public:
    AsHardware()
    {
        const sched_param parameters = { HARDWARE_PRIORITY };

        is_permitted_ = sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
    }
    ~AsHardware()
    {
        const sched_param parameters = { 0 };

        if (is_permitted_)
            sched_setscheduler(0, SCHED_OTHER, &parameters);
    }
    AsHardware(const AsHardware &) = delete;
    AsHardware &operator=(const AsHardware &) = delete;

    bool is_permitted() const { return is_permitted_; }

private:
    bool is_permitted_;
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

Gpu::Gpu(const GpuSettings &settings, const Graph &graph, uint32_t replicas) : releases_early_(settings.releases_early)
{
    Handle<laxity_device_thread, laxity_device_thread_release> thread;
    const std::set<std::string> used = used_by_gpu(graph);

    open(settings);
    check(laxity_device_register(device_, "set-up", 1, 0, thread.out()));
    for (const Object &object : graph.objects) {
        if (used.count(object.name) > 0)
            allocate(object, replicas, thread);
    }
    check(laxity_device_end_job(thread));
}

void Gpu::open(const GpuSettings &settings)
{
    const AsHardware hardware;
    laxity_device_config config = {};

    if (!settings.arbitration.empty())
        check(laxity_gpus_attach(nullptr, settings.arbitration.c_str(), arbitration_.out()));
    config.name = settings.name.c_str();
    config.memory = MEMORY_BYTES;
    config.engines = config.handling = hardware.is_permitted() ? LAXITY_SERVICE_FIXED : LAXITY_SERVICE_AS_IS;
    config.engines_priority = config.handling_priority = HARDWARE_PRIORITY;
    // With an arbitration interrupts are handled as urgently as those that wait for them are.
    if (arbitration_)
        config.handling = LAXITY_SERVICE_OWNERS;
    // Unless the environment names another, the server that was installed with the library.
    if (!getenv("LAXITY_SOFTGPU_SERVER") && access(SOFTGPU_SERVER, X_OK) == 0)
        config.server = SOFTGPU_SERVER;
    check(laxity_device_open(&config, arbitration_, device_.out()));
}

// As many values as the live graph has of it: a delay of depth M keeps M more than there are replicas.
void Gpu::allocate(const Object &object, uint32_t replicas, laxity_device_thread *thread)
{
    std::vector<uint8_t> initial = object.initial;
    Ring &ring = rings_[object.name];

    initial.resize(object.bytes);
    ring.bytes = object.bytes;
    for (uint32_t value = 0; value < replicas + object.depth; value++) {
        Buffer buffer;
        check(laxity_buffer_alloc(device_, 0, object.bytes, buffer.out()));
        // What is no delay is written before it is read.
        if (object.depth > 0)
            check(laxity_device_copy_in(thread, buffer, 0, initial.data(), object.bytes));
        ring.values.push_back(std::move(buffer));
    }
}

GpuThread::GpuThread(const Gpu &gpu, const Node &node) : gpu_(gpu), node_(node), priority_(priority_of_thread())
{
    for (size_t access = 0; access < node.accesses.size(); access++) {
        const auto ring = gpu.rings_.find(node.accesses[access].object);
        if (ring == gpu.rings_.end())
            continue;
        const size_t copied = node.place == Place::Cpu ? ring->second.bytes : 0;
        parameters_.push_back({ access, &ring->second, std::vector<uint8_t>(copied) });
    }
    check(laxity_device_register(gpu.device_, node.name.c_str(), priority_, 0, thread_.out()));
}

double GpuThread::run(uint64_t job, uint64_t deadline_ns, std::vector<void *> addresses)
{
    check(laxity_device_begin_job(thread_, static_cast<uint32_t>(job), priority_, priority_ > 0 ? 0 : deadline_ns));
    const double cpu_us =
        node_.place == Place::Gpu ? launch(job, std::move(addresses)) : work(job, std::move(addresses));
    check(laxity_device_end_job(thread_));
    return cpu_us;
}

// As a kernel, which runs on a thread of the soft GPU.
double GpuThread::launch(uint64_t job, std::vector<void *> addresses)
{
    struct Kernel {
        const GpuThread &thread;
        uint64_t job;
        std::vector<void *> addresses;
        double cpu_us = 0;
        std::exception_ptr error = nullptr;

        void run(const laxity_view *view)
        {
            for (const Parameter &parameter : thread.parameters_) {
                const Access &access = thread.node_.accesses[parameter.access];
                laxity_buffer *buffer = parameter.ring->of(job, access.ago);
                void *written = nullptr;
                const void *read = nullptr;
                check(access.is_write ? laxity_view_write(view, buffer, 0, parameter.ring->bytes, &written)
                                      : laxity_view_read(view, buffer, 0, parameter.ring->bytes, &read));
                // Arguments keeps apart what may be written.
                addresses[parameter.access] = access.is_write ? written : const_cast<void *>(read);
            }
            const Stopwatch stopwatch;
            thread.node_.work(Arguments(std::move(addresses)));
            cpu_us = stopwatch.cpu_us();
        }
    };
    const laxity_kernel function = [](void *argument, const laxity_view *view) -> int32_t {
        Kernel &kernel = *static_cast<Kernel *>(argument);
        try {
            kernel.run(view);
            return 0;
        } catch (...) {
            kernel.error = std::current_exception();
            return 1;
        }
    };
    Kernel kernel = { *this, job, std::move(addresses) };

    const laxity_result result = laxity_device_launch(thread_, function, &kernel, 0);
    if (kernel.error)
        std::rethrow_exception(kernel.error);
    check(result);
    return kernel.cpu_us;
}

double GpuThread::work(uint64_t job, std::vector<void *> addresses)
{
    for (Parameter &parameter : parameters_) {
        const Access &access = node_.accesses[parameter.access];
        addresses[parameter.access] = parameter.copy.data();
        if (!access.is_write)
            check(laxity_device_copy_out(thread_, parameter.ring->of(job, access.ago), 0, parameter.copy.data(),
                                         parameter.copy.size()));
    }
    if (gpu_.releases_early_)
        check(laxity_device_release_token(thread_));

    const Stopwatch stopwatch;
    node_.work(Arguments(std::move(addresses)));
    const double cpu_us = stopwatch.cpu_us();

    for (const Parameter &parameter : parameters_) {
        const Access &access = node_.accesses[parameter.access];
        if (access.is_write)
            check(laxity_device_copy_in(thread_, parameter.ring->of(job, 0), 0, parameter.copy.data(),
                                        parameter.copy.size()));
    }
    return cpu_us;
}
