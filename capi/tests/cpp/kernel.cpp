// Tasks of the scheduler in the kernel: guards end with their scopes, and mistakes are thrown. Prints "ok"; without a scheduler, "none" and its
// error. The kernel lab runs it with one.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <laxity/kernel.hpp>
#include <string>
#include <thread>
#include <type_traits>

using namespace std::chrono_literals;
using namespace laxity::kernel;

namespace
{

void expect(bool condition, int line)
{
    if (!condition) {
        std::printf("line %d\n", line);
        std::exit(1);
    }
}

#define EXPECT(condition) expect(condition, __LINE__)

// What a call throws, as number and text.
template <typename F> laxity_result thrown(F &&call, const char *text)
{
    try {
        call();
    } catch (const laxity::Error &error) {
        EXPECT(std::string(error.what()).find(text) != std::string::npos);
        return error.result();
    }
    return LAXITY_OK;
}

uint64_t nanoseconds(Clock::time_point time)
{
    return static_cast<uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

void guards_end_with_their_scopes(const Scheduler &scheduler)
{
    const Task task(scheduler, { "periodic", 20ms, 15ms, 1ms });
    const Lock lock, other;
    const laxity_kernel_job first = task.wait();

    EXPECT(first.index == 0 && first.is_scheduled && first.deadline_ns == first.release_ns + 15'000'000);
    {
        const Guard outer(task, lock);
        const Guard inner(task, other);

        EXPECT(thrown([&] { Guard(task, lock); }, "wait for itself") == LAXITY_ERROR_ORDER);
        EXPECT(thrown([&] { task.wait(); }, "holds a lock") == LAXITY_ERROR_ORDER);
    }
    {
        const Section section(task);

        EXPECT(thrown([&] { Section again(task); }, "do not nest") == LAXITY_ERROR_ORDER);
        EXPECT(thrown([&] { task.wait(); }, "in a section") == LAXITY_ERROR_ORDER);
    }
    EXPECT(thrown([&] { InterruptThread(scheduler, 1); }, "laxity sched irq") == LAXITY_ERROR_CONFIG);
    const laxity_kernel_job second = task.wait();
    EXPECT(second.index > first.index && second.release_ns >= first.release_ns + 20'000'000);
    EXPECT(thrown([&] { task.wait_for_event([] {}); }, "otherwise") == LAXITY_ERROR_ORDER);
}

void jobs_are_released_when_the_thread_says(const Scheduler &scheduler)
{
    Parameters parameters = { "told", 20ms };
    const Clock::time_point start = Clock::now() + 30ms;

    parameters.start = start;
    parameters.releases = LAXITY_KERNEL_TOLD;
    const Task task(scheduler, parameters);
    const laxity_kernel_job first = task.wait_until(start, start), second = task.wait_until(start + 31ms, start + 45ms);
    EXPECT(first.release_ns == nanoseconds(start) && first.deadline_ns == nanoseconds(start + 20ms));
    EXPECT(second.release_ns == nanoseconds(start + 31ms) && second.deadline_ns == nanoseconds(start + 45ms));
}

void jobs_are_released_at_events(const Scheduler &scheduler)
{
    Parameters parameters = { "events", 20ms };

    parameters.releases = LAXITY_KERNEL_EVENTS;
    const Task task(scheduler, parameters);
    const Clock::time_point until = Clock::now() + 3ms;
    const laxity_kernel_job first = task.wait_for_event([&] { std::this_thread::sleep_until(until); });
    EXPECT(first.index == 1 && first.is_scheduled && first.release_ns >= nanoseconds(until));
    bool is_caught = false;
    try {
        task.wait_for_event([] { throw 7; });
    } catch (int number) {
        is_caught = number == 7;
    }
    EXPECT(is_caught);
    // The job that began so is complete.
    const laxity_kernel_job third = task.wait_for_event([] { std::this_thread::sleep_for(1ms); });
    EXPECT(third.index == 3 && third.deadline_ns >= first.deadline_ns + 40'000'000);
}

} // namespace

int main()
{
    static_assert(!std::is_copy_constructible_v<Guard> && !std::is_copy_constructible_v<Section>);
    try {
        const Scheduler scheduler;

        EXPECT(thrown([&] { Task(scheduler, { "t", 1ms, 1ms, 1ms, 2ms }); }, "a budget of 2000000 ns") == LAXITY_ERROR_CONFIG);
        guards_end_with_their_scopes(scheduler);
        jobs_are_released_when_the_thread_says(scheduler);
        jobs_are_released_at_events(scheduler);
    } catch (const laxity::Error &error) {
        EXPECT(error.result() == LAXITY_ERROR_NO_SYSTEM);
        std::printf("none: %s\n", error.what());
        return 0;
    }
    std::printf("ok\n");
    return 0;
}
