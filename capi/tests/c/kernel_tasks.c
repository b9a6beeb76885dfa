// Tasks of the scheduler in the kernel: each mistake gets a number and a text. Prints "ok"; without a scheduler, "none" and its
// error. The kernel lab runs it with one.

#include <laxity.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "expect.h"

#define MS (1000 * 1000ull)

static void what_cannot_be_a_task_is_refused(struct laxity_kernel_scheduler *kernel)
{
    const struct laxity_kernel_parameters unnamed = { .cluster = -1, .period_ns = 1 * MS },
                                          no_period = { .name = "t", .cluster = -1 },
                                          elsewhere = { .name = "t", .cluster = 63, .period_ns = 1 * MS },
                                          greedy = { .name = "t", .cluster = -1, .period_ns = 1 * MS, .budget_ns = 2 * MS };
    struct laxity_kernel_task *task = (void *)8;

    EXPECT(laxity_kernel_task_begin(kernel, NULL, &task) == LAXITY_ERROR_NULL);
    EXPECT(task == NULL);
    EXPECT(laxity_kernel_task_begin(kernel, &unnamed, &task) == LAXITY_ERROR_NULL);
    EXPECT(laxity_kernel_task_begin(kernel, &no_period, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(laxity_kernel_task_begin(kernel, &elsewhere, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "cluster 63"));
    EXPECT(laxity_kernel_task_begin(kernel, &greedy, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "a budget of 2000000 ns"));
    EXPECT(laxity_kernel_task_begin((void *)&greedy, &greedy, &task) == LAXITY_ERROR_HANDLE);
    OK(laxity_kernel_task_release(&task));
}

static void calls_out_of_order_are_refused(struct laxity_kernel_scheduler *kernel)
{
    const struct laxity_kernel_parameters parameters = { .name = "t", .cluster = -1, .period_ns = 20 * MS, .wcet_ns = 1 * MS };
    struct laxity_kernel_lock *lock, *other;
    struct laxity_kernel_task *task;
    struct laxity_kernel_job first, second;

    OK(laxity_kernel_lock_create(&lock));
    OK(laxity_kernel_lock_create(&other));
    OK(laxity_kernel_task_begin(kernel, &parameters, &task));
    OK(laxity_kernel_task_wait(task, &first));
    EXPECT(first.index == 0 && first.is_scheduled && first.deadline_ns == first.release_ns + 20 * MS);
    EXPECT(laxity_kernel_task_unlock(task, lock) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_lock(task, lock));
    OK(laxity_kernel_task_lock(task, other));
    EXPECT(laxity_kernel_task_lock(task, lock) == LAXITY_ERROR_ORDER);
    EXPECT(strstr(laxity_last_error()->message, "wait for itself"));
    EXPECT(laxity_kernel_task_wait(task, NULL) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_unlock(task, lock));
    EXPECT(laxity_kernel_task_wait(task, NULL) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_kernel_task_release(&task) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_unlock(task, other));
    EXPECT(laxity_kernel_task_leave_section(task) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_enter_section(task));
    EXPECT(laxity_kernel_task_enter_section(task) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_kernel_task_wait(task, NULL) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_leave_section(task));
    OK(laxity_kernel_task_wait(task, &second));
    EXPECT(second.index > first.index && second.release_ns >= first.release_ns + 20 * MS);
    OK(laxity_kernel_task_release(&task));
    EXPECT(task == NULL);
    OK(laxity_kernel_lock_release(&lock));
    OK(laxity_kernel_lock_release(&other));
}

static void jobs_are_released_as_the_task_says(struct laxity_kernel_scheduler *kernel)
{
    const uint64_t period = 20 * MS;
    struct laxity_kernel_parameters parameters = { .name = "t", .cluster = -1, .period_ns = period, .wcet_ns = 1 * MS };
    struct laxity_kernel_interrupts interrupts = { 0 };
    struct timespec brief = { .tv_nsec = 3 * MS };
    struct laxity_kernel_task *task;
    struct laxity_kernel_job first, second, third;

    parameters.releases = 3;
    EXPECT(laxity_kernel_task_begin(kernel, &parameters, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "enum laxity_kernel_releases"));
    parameters.releases = LAXITY_KERNEL_TOLD;
    OK(laxity_kernel_task_begin(kernel, &parameters, &task));
    EXPECT(laxity_kernel_task_wait(task, &first) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_wait_until(task, 0, 0, &first));
    OK(laxity_kernel_task_wait_until(task, first.release_ns + 31 * MS, first.release_ns + 45 * MS, &second));
    EXPECT(second.release_ns == first.release_ns + 31 * MS && second.deadline_ns == first.release_ns + 45 * MS);
    EXPECT(laxity_kernel_task_end_event(task, NULL) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_release(&task));
    parameters.releases = LAXITY_KERNEL_EVENTS;
    OK(laxity_kernel_task_begin(kernel, &parameters, &task));
    OK(laxity_kernel_task_begin_event(task));
    EXPECT(laxity_kernel_task_begin_event(task) == LAXITY_ERROR_ORDER);
    nanosleep(&brief, NULL);
    OK(laxity_kernel_task_end_event(task, &second));
    /* What does not sleep is an event, too; others see jobs a period apart. */
    OK(laxity_kernel_task_begin_event(task));
    OK(laxity_kernel_task_end_event(task, &third));
    EXPECT(second.index == 1 && third.index == 2 && third.release_ns >= second.release_ns);
    EXPECT(third.deadline_ns == second.deadline_ns + period && second.is_scheduled && third.is_scheduled);
    EXPECT(laxity_kernel_scheduler_interrupts(kernel, 1, &interrupts) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "laxity sched irq"));
    EXPECT(laxity_kernel_task_expect_no_more(task, &interrupts) == LAXITY_ERROR_ORDER);
    for (int number = 0; number < 8; number++)
        OK(laxity_kernel_task_expect(task, &interrupts));
    EXPECT(laxity_kernel_task_expect(task, &interrupts) == LAXITY_ERROR_ORDER);
    OK(laxity_kernel_task_expect_no_more(task, &interrupts));
    OK(laxity_kernel_task_release(&task));
}

int main(void)
{
    struct laxity_kernel_lock *lock = NULL;
    struct laxity_kernel_scheduler *kernel = (void *)8;

    EXPECT(laxity_kernel_scheduler_join(NULL) == LAXITY_ERROR_NULL);
    EXPECT(laxity_kernel_lock_create(NULL) == LAXITY_ERROR_NULL);
    OK(laxity_kernel_lock_create(&lock));
    EXPECT(laxity_kernel_task_lock(NULL, lock) == LAXITY_ERROR_NULL);
    EXPECT(laxity_kernel_task_wait((void *)lock, NULL) == LAXITY_ERROR_HANDLE);
    OK(laxity_kernel_lock_release(&lock));
    OK(laxity_kernel_lock_release(&lock));
    if (laxity_kernel_scheduler_join(&kernel) != LAXITY_OK) {
        EXPECT(laxity_last_error()->result == LAXITY_ERROR_NO_SYSTEM && kernel == NULL);
        printf("none: %s\n", laxity_last_error()->message);
        return 0;
    }
    what_cannot_be_a_task_is_refused(kernel);
    calls_out_of_order_are_refused(kernel);
    jobs_are_released_as_the_task_says(kernel);
    OK(laxity_kernel_scheduler_release(&kernel));
    printf("ok\n");
    return 0;
}
