// Tasks of Laxity's scheduler in the kernel for C++17. Headers only, on laxity.h, which says more.
//
//     laxity::kernel::Scheduler scheduler;
//     laxity::kernel::Lock lock;
//     laxity::kernel::Task task(scheduler, { "control", 10ms }); // this thread
//
//     for (;;) {
//         const laxity_kernel_job job = task.wait();
//         const laxity::kernel::Guard guard(task, lock); // a job that waits for it lends its priority
//
//         control(job.deadline_ns);
//     }

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "laxity.hpp"

namespace laxity::kernel
{

using Clock = std::chrono::steady_clock;

// The scheduler that is loaded now, as this process knows it. Threads share it. Throws where none is: `laxity sched start`, as
// root, loads it.
class Scheduler
{
public:
    Scheduler() { check(laxity_kernel_scheduler_join(handle_.out())); }

    // For the functions of laxity.h.
    const laxity_kernel_scheduler *get() const { return handle_.get(); }

private:
    Handle<laxity_kernel_scheduler, laxity_kernel_scheduler_release> handle_;
};

// A thread of the kernel that handles interrupts for tasks, by its number in Linux.
class InterruptThread
{
public:
    InterruptThread(const Scheduler &scheduler, uint32_t thread)
    {
        check(laxity_kernel_scheduler_interrupts(scheduler.get(), thread, &interrupts_));
    }

    // For the functions of laxity.h.
    const laxity_kernel_interrupts &get() const { return interrupts_; }

private:
    laxity_kernel_interrupts interrupts_;
};

// A lock between tasks of one Scheduler, whose holder inherits from those that wait. It outlives their guards.
class Lock
{
public:
    Lock() { check(laxity_kernel_lock_create(handle_.out())); }

    // For the functions of laxity.h.
    const laxity_kernel_lock *get() const { return handle_.get(); }

private:
    Handle<laxity_kernel_lock, laxity_kernel_lock_release> handle_;
};

// What a task is. Spans that are 0 are not said.
struct Parameters {
    // For people; 1 to 64 bytes.
    std::string name;
    // Of its releases, or the least time between two.
    std::chrono::nanoseconds period;
    // Relative to each release; 0: the period.
    std::chrono::nanoseconds deadline = {};
    // The most that a job takes, by which a cluster is chosen.
    std::chrono::nanoseconds wcet = {};
    // CPU time that a job may use until its deadline, and then again in each period, which is enforced; 0: as much as it needs.
    std::chrono::nanoseconds budget = {};
    // The cluster that has it, from 0; nothing: the one with the least load.
    std::optional<uint16_t> cluster = {};
    // Under FP, its place among others: the smaller the more urgent.
    uint32_t priority = 0;
    // The release of the first job; nothing: at once.
    std::optional<Clock::time_point> start = {};
    // When others are released.
    laxity_kernel_releases releases = LAXITY_KERNEL_PERIODIC;
};

// The calling thread as a task, until this ends, which is in the same thread and after the guards of its job.
class Task
{
public:
    Task(const Scheduler &scheduler, const Parameters &parameters)
    {
        const std::string of = " of task " + parameters.name;
        laxity_kernel_parameters all = {};

        all.name = parameters.name.c_str();
        all.cluster = parameters.cluster ? static_cast<int32_t>(*parameters.cluster) : -1;
        all.priority = parameters.priority;
        all.period_ns = span_ns(parameters.period, "the period" + of);
        all.deadline_ns = span_ns(parameters.deadline, "the deadline" + of);
        all.wcet_ns = span_ns(parameters.wcet, "the wcet" + of);
        all.budget_ns = span_ns(parameters.budget, "the budget" + of);
        all.start_ns = parameters.start ? time_ns(*parameters.start, "the start" + of) : 0;
        all.releases = parameters.releases;
        check(laxity_kernel_task_begin(scheduler.get(), &all, handle_.out()));
    }

    // Completes the present job, if there is one, and returns when the next one is released and has a CPU.
    laxity_kernel_job wait() const
    {
        laxity_kernel_job job;

        check(laxity_kernel_task_wait(handle_.get(), &job));
        return job;
    }

    // The same for a job that is released and due then (LAXITY_KERNEL_TOLD).
    laxity_kernel_job wait_until(Clock::time_point release, Clock::time_point deadline) const
    {
        laxity_kernel_job job;

        check(laxity_kernel_task_wait_until(handle_.get(), time_ns(release, "the release"), time_ns(deadline, "the deadline"), &job));
        return job;
    }

    // The same for a job that the event releases which `wait` waits for, in whatever call (LAXITY_KERNEL_EVENTS). If `wait` throws, the
    // job has begun all the same, and that is thrown.
    template <typename F> laxity_kernel_job wait_for_event(F &&wait) const
    {
        std::exception_ptr thrown;
        laxity_kernel_job job;

        check(laxity_kernel_task_begin_event(handle_.get()));
        try {
            wait();
        } catch (...) {
            thrown = std::current_exception();
        }
        check(laxity_kernel_task_end_event(handle_.get(), &job));
        if (thrown)
            std::rethrow_exception(thrown);
        return job;
    }

    // For the functions of laxity.h.
    const laxity_kernel_task *get() const { return handle_.get(); }

private:
    // steady_clock is CLOCK_MONOTONIC on Linux.
    static uint64_t time_ns(Clock::time_point time, const std::string &of)
    {
        return span_ns(time.time_since_epoch(), of);
    }

    Handle<laxity_kernel_task, laxity_kernel_task_release> handle_;
};

// What ends with a scope, in a job of a task, which outlives it.
template <typename Of, laxity_result (*end)(const laxity_kernel_task *, const Of *)> class Scope
{
public:
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() { end(task_, of_); }

protected:
    Scope(const Task &task, const Of *of) : task_(task.get()), of_(of) {}

private:
    const laxity_kernel_task *task_;
    const Of *of_;
};

// Holds a lock. The job is suspended while it waits for it.
class Guard : public Scope<laxity_kernel_lock, laxity_kernel_task_unlock>
{
public:
    Guard(const Task &task, const Lock &lock) : Scope(task, taken(task, lock)) {}

private:
    // Before there is something that would end.
    static const laxity_kernel_lock *taken(const Task &task, const Lock &lock)
    {
        check(laxity_kernel_task_lock(task.get(), lock.get()));
        return lock.get();
    }
};

// An interrupt thread works for the job: to be made before the device is told to begin.
class Expectation : public Scope<laxity_kernel_interrupts, laxity_kernel_task_expect_no_more>
{
public:
    Expectation(const Task &task, const InterruptThread &thread) : Scope(task, expected(task, thread)) {}

private:
    static const laxity_kernel_interrupts *expected(const Task &task, const InterruptThread &thread)
    {
        check(laxity_kernel_task_expect(task.get(), &thread.get()));
        return &thread.get();
    }
};

// No job of another task preempts this one, for 10 ms at most. Sections do not nest.
class Section
{
public:
    explicit Section(const Task &task) : task_(task.get()) { check(laxity_kernel_task_enter_section(task_)); }
    Section(const Section &) = delete;
    Section &operator=(const Section &) = delete;
    ~Section() { laxity_kernel_task_leave_section(task_); }

private:
    const laxity_kernel_task *task_;
};

} // namespace laxity::kernel
