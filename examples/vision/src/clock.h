// Time, as Laxity tells it, too.

#pragma once

#include <cstdint>
#include <ctime>

inline uint64_t read_clock(clockid_t clock)
{
    timespec now;

    // Cannot fail: the clocks below are there on every Linux.
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// On CLOCK_MONOTONIC, in nanoseconds.
inline uint64_t now_ns()
{
    return read_clock(CLOCK_MONOTONIC);
}

// The time since it was made, and how much of it the calling thread, which made it, was on a CPU.
class Stopwatch
{
public:
    double us() const { return static_cast<double>(now_ns() - start_ns_) / 1e3; }
    double cpu_us() const { return static_cast<double>(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns_) / 1e3; }

private:
    // The CPU's first: what it costs to ask belongs to the time that passes.
    uint64_t cpu_ns_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
    uint64_t start_ns_ = now_ns();
};
