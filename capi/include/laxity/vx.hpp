// Vision graphs in OpenVX's terms for C++17: executed periodically, a thread a node, frames overlapping. Headers only, on
// laxity.h: g++ -std=c++17 program.cpp $(pkg-config --cflags --libs laxity) -pthread
//     vx::Graph graph("tracker");
//     const auto image = graph.object("image", vx::image<uint8_t>(640, 480));
//     // Of this frame and of the last.
//     const auto points = graph.delay("points", vx::array<Point>(1000), 2);
//     graph.input({ vx::output(image) }, [&](vx::Job &job) { return camera.read(job.write(image).data()); });
//     graph.node("track", { vx::input(image), vx::past(points, 1), vx::output(points) },
//                [=](vx::Job &job) { track(job.read(image), job.read(points, 1), job.write(points)); });
//     vx::Run run = graph.verify().spawn({ 33ms, vx::fifo(50) });
//     run.wait();
//
// Calls that fail throw laxity::Error. An exception of a kernel stops the graph; Run::wait throws it as the cause.

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "exemplars.hpp"
#include "laxity.hpp"

namespace laxity::vx
{

// A data object of a graph, or the current slot of a delay.
template <typename E> class Object
{
public:
    Object(uint32_t number, const E &exemplar) : number_(number), exemplar_(exemplar) {}

    uint32_t number() const { return number_; }
    const E &exemplar() const { return exemplar_; }

private:
    uint32_t number_;
    E exemplar_;
};

using Parameter = laxity_vx_parameter;

// The node reads the object.
template <typename E> Parameter input(const Object<E> &object)
{
    return { object.number(), true, false, 0 };
}

// The node reads the delay's slot of so many frames ago.
template <typename E> Parameter past(const Object<E> &delay, uint32_t ago)
{
    return { delay.number(), true, false, ago };
}

// The node writes all of the object, or of the current slot of the delay.
template <typename E> Parameter output(const Object<E> &object)
{
    return { object.number(), false, true, 0 };
}

// The node changes the object in place.
template <typename E> Parameter inout(const Object<E> &object)
{
    return { object.number(), true, true, 0 };
}

// A kernel's view of its node in one frame, valid until it returns. For the thread that runs it.
class Job
{
public:
    explicit Job(laxity_vx_job *job) : job_(job) {}

    // The frame, from 0.
    uint64_t index() const
    {
        uint64_t index;

        check(laxity_vx_job_index(job_, &index));
        return index;
    }

    // When the job should be complete, in ns of CLOCK_MONOTONIC.
    uint64_t deadline_ns() const
    {
        uint64_t deadline_ns = 0;

        check(laxity_vx_job_times(job_, nullptr, &deadline_ns));
        return deadline_ns;
    }

    // An input of the node, or a delay's slot of so many frames ago.
    template <typename E> typename E::Reading read(const Object<E> &object, uint32_t ago = 0) const
    {
        const void *bytes;
        size_t length;

        check(laxity_vx_job_read(job_, object.number(), ago, &bytes, &length));
        check_length(object, length);
        return object.exemplar().reading(bytes);
    }

    // An output of the node, undefined at first (arrays are empty), or an object that it changes.
    template <typename E> typename E::Writing write(const Object<E> &object) const
    {
        void *bytes;
        size_t length;

        check(laxity_vx_job_write(job_, object.number(), &bytes, &length));
        check_length(object, length);
        return object.exemplar().writing(bytes);
    }

    // The GPU, if the graph was spawned with one.
    Gpu gpu() const
    {
        laxity_device_thread *thread;

        check(laxity_vx_job_gpu(job_, &thread));
        return Gpu(thread);
    }

    // For the functions of laxity.h.
    laxity_vx_job *get() const { return job_; }

private:
    // Views reach as far as the exemplar says.
    template <typename E> static void check_length(const Object<E> &object, size_t length)
    {
        const size_t expected = object.exemplar().bytes();

        if (length != expected)
            throw Error(LAXITY_ERROR_NO_OBJECT, "object " + std::to_string(object.number()) + " has " +
                                                    std::to_string(length) + " bytes and not " + std::to_string(expected) +
                                                    "; make views of it with its own exemplar (VX_ERROR_INVALID_FORMAT)");
    }

    laxity_vx_job *job_;
};

// A graph that has failed, as a node did: what() names it, and the frame.
class Failed : public Error
{
public:
    Failed(const Error &error, std::exception_ptr cause) : Error(error), cause_(std::move(cause)) {}

    // The kernel's exception; null if it is not known.
    const std::exception_ptr &cause() const { return cause_; }

private:
    std::exception_ptr cause_;
};

// How the threads of nodes are scheduled.
struct Policy {
    laxity_vx_policy kind = LAXITY_VX_OTHER;
    uint8_t base_priority = 0;
    std::chrono::nanoseconds default_budget{};
    uint32_t measured_frames = 0;
    uint32_t margin_percent = 0;
    const laxity_system *system = nullptr;
    uint32_t cluster = 0;
};

// SCHED_OTHER: as other programs.
inline Policy other()
{
    return {};
}

// SCHED_FIFO: `base`, and the length of the longest path from the input callback to the node.
inline Policy fifo(uint8_t base)
{
    Policy policy;

    policy.kind = LAXITY_VX_FIFO;
    policy.base_priority = base;
    return policy;
}

// SCHED_DEADLINE: the node's budget in each period, or `default_budget`; 0: nodes without a budget are refused.
inline Policy deadline(std::chrono::nanoseconds default_budget = {})
{
    Policy policy;

    policy.kind = LAXITY_VX_DEADLINE;
    policy.default_budget = default_budget;
    return policy;
}

// SCHED_DEADLINE after `frames` frames, in which the budgets are measured; so many hundredths are added.
inline Policy deadline_measured(uint32_t frames, uint32_t margin_percent)
{
    Policy policy;

    policy.kind = LAXITY_VX_DEADLINE_MEASURED;
    policy.measured_frames = frames;
    policy.margin_percent = margin_percent;
    return policy;
}

// Laxity's own scheduler: each node is a task of `system`, in its cluster `cluster`. The system lives until the graph is
// spawned.
inline Policy scheduled_by(const laxity_system *system, uint32_t cluster = 0)
{
    Policy policy;

    policy.kind = LAXITY_VX_LAXITY;
    policy.system = system;
    policy.cluster = cluster;
    return policy;
}

// How a graph is executed. For 0 and empty fields see laxity_vx_options.
struct Options {
    // The time between releases of frames.
    std::chrono::nanoseconds period{};
    Policy policy = {};
    // The graph ends after so many frames, and releases none so long after the first.
    uint64_t frames = 0;
    std::chrono::nanoseconds duration{};
    // How many frames can be worked on at the same time; 0: the graph's depth.
    uint32_t replicas = 0;
    // Time 0 on CLOCK_MONOTONIC (0: when all threads are ready), and the first release after it.
    uint64_t start_ns = 0;
    std::chrono::nanoseconds phase{};
    std::vector<uint32_t> cpus = {};
    bool lock_memory = false;
    uint32_t recorder = 0;
    // Lives until the call returns.
    const Device *gpu = nullptr;
    // Under Laxity's own scheduler: where the trace is written; empty: nowhere.
    std::string trace = {};
};

using Frame = laxity_vx_frame;

// The kernels of a graph, which are called while a run of it lives.
class Kernels
{
public:
    using Kernel = std::function<bool(Job &)>;

    // The function for laxity.h, with the result of add() as its argument.
    static int32_t run(void *argument, laxity_vx_job *job) noexcept
    {
        Entry &entry = *static_cast<Entry *>(argument);

        try {
            Job of_kernel(job);

            return entry.kernel(of_kernel) ? 0 : LAXITY_VX_END;
        } catch (const std::exception &error) {
            entry.owner->note(std::current_exception());
            laxity_vx_job_fail(job, error.what());
        } catch (...) {
            entry.owner->note(std::current_exception());
        }
        return 1;
    }

    void *add(Kernel kernel)
    {
        entries_.push_back(std::make_unique<Entry>(Entry{ this, std::move(kernel) }));
        return entries_.back().get();
    }

    // The exception of the first kernel that failed.
    std::exception_ptr error() const
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return error_;
    }

    // Another run begins. Returns the exception of the one before.
    std::exception_ptr forget()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return std::exchange(error_, nullptr);
    }

    // It does not, and the one before goes on.
    void note(std::exception_ptr error)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_)
            error_ = std::move(error);
    }

private:
    struct Entry {
        Kernels *owner;
        Kernel kernel;
    };

    std::vector<std::unique_ptr<Entry>> entries_;
    mutable std::mutex mutex_;
    std::exception_ptr error_;
};

// A graph that is executed. Destroyed or assigned to, it is terminated, and its threads have ended.
class Run
{
public:
    Run(const laxity_vx_verified *verified, const laxity_vx_options &options, std::shared_ptr<Kernels> kernels)
        : kernels_(std::move(kernels))
    {
        check(laxity_vx_spawn(verified, &options, handle_.out()));
    }
    Run(Run &&) noexcept = default;

    // The graph that it executed is terminated first, as at its end.
    Run &operator=(Run &&other) noexcept
    {
        // Threads of that graph call the kernels until its handle is released.
        handle_ = std::move(other.handle_);
        kernels_ = std::move(other.kernels_);
        return *this;
    }

    // Waits until the graph has ended. Throws Failed if a node has failed.
    void wait() const { end_within(LAXITY_FOREVER); }

    // As wait(), so long at most; not at all if that is negative. Returns whether the graph has ended.
    bool wait_for(std::chrono::nanoseconds timeout) const
    {
        return end_within(timeout.count() < 0 ? 0 : static_cast<uint64_t>(timeout.count()));
    }

    // Waits until so many frames are completed, or the graph has ended. Returns how many are completed.
    uint64_t wait_for_frames(uint64_t frames, uint64_t timeout_ns = LAXITY_FOREVER) const
    {
        uint64_t completed;

        check(laxity_vx_run_wait_for_frames(handle_.get(), frames, timeout_ns, &completed));
        return completed;
    }

    // Releases no more frames; those that were begun are completed. Any thread may call it; it does not wait.
    void stop() const { check(laxity_vx_run_stop(handle_.get())); }

    // Ends as soon as kernels return. Any thread may call it; it does not wait.
    void terminate() const { check(laxity_vx_run_terminate(handle_.get())); }

    // Frames that were begun.
    uint64_t begun() const
    {
        uint64_t begun;

        check(laxity_vx_run_counts(handle_.get(), &begun, nullptr));
        return begun;
    }

    // Frames that are completed.
    uint64_t completed() const
    {
        uint64_t completed;

        check(laxity_vx_run_counts(handle_.get(), nullptr, &completed));
        return completed;
    }

    // The releases and completions of completed frames, the oldest first; the last 2^20 at most.
    std::vector<Frame> frames() const
    {
        std::vector<Frame> frames(completed());
        size_t count;

        check(laxity_vx_run_frames(handle_.get(), frames.data(), frames.size(), &count));
        frames.resize(count);
        return frames;
    }

    // For the functions of laxity.h.
    laxity_vx_run *get() const { return handle_.get(); }

private:
    bool end_within(uint64_t timeout_ns) const
    {
        const laxity_result result = laxity_vx_run_wait(handle_.get(), timeout_ns);

        if (result == LAXITY_TIMED_OUT)
            return false;
        if (result == LAXITY_ERROR_FAILED)
            throw Failed(last_error(), kernels_->error());
        check(result);
        return true;
    }

    // Declared before the handle, whose threads call them until it is released.
    std::shared_ptr<Kernels> kernels_;
    Handle<laxity_vx_run, laxity_vx_run_release> handle_;
};

// A graph that can be spawned, and again when its Run has ended and is destroyed: assigning a new one to it is too late for that.
class Verified
{
public:
    Verified(laxity_vx_graph **graph, std::shared_ptr<Kernels> kernels) : kernels_(std::move(kernels))
    {
        check(laxity_vx_graph_verify(graph, handle_.out()));
    }

    // Executes it periodically. Returns when all threads are ready.
    Run spawn(const Options &options) const
    {
        laxity_vx_options given = {};

        given.period_ns = span_ns(options.period, "the period");
        given.policy = options.policy.kind;
        given.base_priority = options.policy.base_priority;
        given.default_budget_ns = span_ns(options.policy.default_budget, "the default budget");
        given.measured_frames = options.policy.measured_frames;
        given.margin_percent = options.policy.margin_percent;
        given.replicas = options.replicas;
        given.start_ns = options.start_ns;
        given.phase_ns = span_ns(options.phase, "the phase");
        given.frames = options.frames;
        given.duration_ns = span_ns(options.duration, "the duration");
        given.cpus = options.cpus.data();
        given.cpus_count = options.cpus.size();
        given.gpu = options.gpu ? options.gpu->get() : nullptr;
        given.lock_memory = options.lock_memory;
        given.recorder = options.recorder;
        given.system = options.policy.system;
        given.cluster = options.policy.cluster;
        given.trace = options.trace.empty() ? nullptr : options.trace.c_str();
        const std::exception_ptr of_last = kernels_->forget();
        try {
            return Run(handle_.get(), given, kernels_);
        } catch (const Error &) {
            kernels_->note(of_last);
            throw;
        }
    }

    // The number of nodes on the longest path: by rule of thumb the number of replicas.
    uint32_t depth() const
    {
        uint32_t depth;

        check(laxity_vx_verified_depth(handle_.get(), &depth));
        return depth;
    }

    // The graph in the language of Graphviz.
    std::string dot() const
    {
        const char *dot;

        check(laxity_vx_verified_dot(handle_.get(), &dot));
        return dot;
    }

private:
    std::shared_ptr<Kernels> kernels_;
    Handle<laxity_vx_verified, laxity_vx_verified_release> handle_;
};

// A graph that is being described. Kernels run on threads of their own, at the same time, for as long as a run lives.
class Graph
{
public:
    // A graph of this name while it runs, in `directory` (nullptr: the default one).
    explicit Graph(const std::string &name, const char *directory = nullptr)
    {
        Handle<laxity_registry, laxity_registry_release> registry;

        check(laxity_registry_new(directory, registry.out()));
        check(laxity_vx_graph_new(registry.get(), name.c_str(), handle_.out()));
    }

    // A data object like `exemplar`.
    template <typename E> Object<E> object(const std::string &name, const E &exemplar)
    {
        return delay(name, exemplar, 1);
    }

    // A delay: slot 0 is written in this frame, slot k was k frames ago, up to `slots` - 1. Slots that no frame
    // wrote are zeros.
    template <typename E> Object<E> delay(const std::string &name, const E &exemplar, uint32_t slots)
    {
        return { exemplar.add(described(), name.c_str(), slots, nullptr), exemplar };
    }

    // As delay; `fill` writes the initial value, which it gets as a job gets an output, zero at first.
    template <typename E, typename F>
    Object<E> delay_from(const std::string &name, const E &exemplar, uint32_t slots, F &&fill)
    {
        // Objects are aligned to cache lines.
        struct alignas(64) Line {
            uint8_t bytes[64] = {};
        };
        std::vector<Line> memory(exemplar.bytes() / sizeof(Line) + 1);

        fill(exemplar.writing(memory.data()));
        return { exemplar.add(described(), name.c_str(), slots, memory.data()), exemplar };
    }

    // A node, which calls `kernel` with a Job in each frame. Nodes that use one object do so in the order in which they
    // are added, the one that writes it first. `budget` is the CPU time that a job needs at most, for SCHED_DEADLINE.
    template <typename F>
    void node(const std::string &name, const std::vector<Parameter> &parameters, F kernel,
              std::chrono::nanoseconds budget = {})
    {
        const uint64_t budget_ns = span_ns(budget, "the budget of node " + name);
        void *argument = add(std::move(kernel));

        check(laxity_vx_graph_node(described(), name.c_str(), parameters.data(), parameters.size(), Kernels::run,
                                   argument, budget_ns));
    }

    // The input callback, called at the release of each frame, before all nodes. It may write the graph's input, and
    // returns whether there is a frame.
    template <typename F>
    void input(const std::vector<Parameter> &parameters, F callback, std::chrono::nanoseconds budget = {})
    {
        const uint64_t budget_ns = span_ns(budget, "the budget of the input callback");
        void *argument = kernels_->add(std::move(callback));

        check(laxity_vx_graph_input(described(), parameters.data(), parameters.size(), Kernels::run, argument,
                                    budget_ns));
    }

    // The output callback, called when all nodes have completed a frame. It may read the graph's output.
    template <typename F>
    void output(const std::vector<Parameter> &parameters, F callback, std::chrono::nanoseconds budget = {})
    {
        const uint64_t budget_ns = span_ns(budget, "the budget of the output callback");
        void *argument = add(std::move(callback));

        check(laxity_vx_graph_output(described(), parameters.data(), parameters.size(), Kernels::run, argument,
                                     budget_ns));
    }

    // Derives which node waits for which. That uses the description up, whether it succeeds or not: the graph can neither be
    // changed afterwards nor verified again.
    Verified verify()
    {
        described();
        return Verified(handle_.out(), kernels_);
    }

private:
    // The description, as long as it is there.
    laxity_vx_graph *described() const
    {
        if (!handle_.get())
            throw Error(LAXITY_ERROR_NULL, "the graph was verified, and its description is used up; "
                                           "spawn what verify() returned, or describe a new graph");
        return handle_.get();
    }

    template <typename F> void *add(F kernel)
    {
        return kernels_->add([kernel = std::move(kernel)](Job &job) mutable {
            kernel(job);
            return true;
        });
    }

    std::shared_ptr<Kernels> kernels_ = std::make_shared<Kernels>();
    Handle<laxity_vx_graph, laxity_vx_graph_release> handle_;
};

} // namespace laxity::vx
