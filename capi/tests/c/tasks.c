// Systems and tasks: what jobs may do, and each mistake gets a number and a text. Prints "ok", or "skipped" if this user may
// not have real-time threads.

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

#define MS (1000 * 1000ull)

static const struct laxity_task_parameters each_second = { .name = "task", .period_ns = 1000 * MS };

static void what_cannot_be_a_system_is_refused(const char *directory)
{
    const struct laxity_system_config all = { 0 }, odd = { .rule = 9 }, no_list = { .clusters = "0;all" },
                                      twice = { .clusters = "0;0" }, absent = { .clusters = "1023" };
    struct laxity_system *system = (void *)8;
    size_t removed = 1;

    EXPECT(laxity_system_create_or_attach(directory, "s", NULL, &system) == LAXITY_ERROR_NULL);
    EXPECT(system == NULL);
    EXPECT(laxity_system_create_or_attach(directory, "s", &odd, &system) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_system_create_or_attach(directory, "s", &no_list, &system) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "the cluster \"all\" is no list of CPUs"));
    EXPECT(laxity_system_create_or_attach(directory, "s", &twice, &system) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "CPU 0 is named twice"));
    EXPECT(laxity_system_create_or_attach(directory, "s", &absent, &system) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "there is no CPU 1023 here"));
    EXPECT(laxity_system_create_or_attach(directory, "a/b", &all, &system) == LAXITY_ERROR_NAME);
    EXPECT(laxity_system_attach(directory, "s", &system) == LAXITY_ERROR_NO_SYSTEM);
    EXPECT(laxity_system_attach(directory, "s", NULL) == LAXITY_ERROR_NULL);
    OK(laxity_system_gc(directory, &removed));
    EXPECT(removed == 0);
}

static void what_cannot_be_a_task_is_refused(struct laxity_system *system)
{
    const struct laxity_task_parameters unnamed = { .period_ns = 1 }, empty = { .name = "", .period_ns = 1 },
                                        no_period = { .name = "t" },
                                        elsewhere = { .name = "t", .cluster = 3, .period_ns = 1 },
                                        odd = { .name = "t", .period_ns = 1, .server = 3 },
                                        without = { .name = "t", .period_ns = 1, .server = LAXITY_SERVER_SPORADIC },
                                        escape = { .name = "t\033[2J", .period_ns = 1 },
                                        greedy = { .name = "t", .period_ns = 1 * MS, .budget_ns = 2 * MS };
    struct laxity_task *task = (void *)8;

    EXPECT(laxity_task_begin(system, NULL, &task) == LAXITY_ERROR_NULL);
    EXPECT(task == NULL);
    EXPECT(laxity_task_begin(system, &unnamed, &task) == LAXITY_ERROR_NULL);
    EXPECT(laxity_task_begin(system, &empty, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(laxity_task_begin(system, &no_period, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(laxity_task_begin(system, &elsewhere, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "cluster 3 is not one of the system's 1"));
    EXPECT(laxity_task_begin(system, &odd, &task) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "enum laxity_server"));
    EXPECT(laxity_task_begin(system, &without, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "its budget is to be enforced and none is said"));
    EXPECT(laxity_task_begin(system, &escape, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(!strchr(laxity_last_error()->message, '\033'));
    EXPECT(laxity_task_begin(system, &greedy, &task) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "server budget 2 ms in period 1 ms"));
    EXPECT(laxity_task_begin((void *)&each_second, &each_second, &task) == LAXITY_ERROR_HANDLE);
    OK(laxity_task_release(&task));
}

static void *of_another_thread(void *task)
{
    struct laxity_task *copy = task;

    EXPECT(laxity_task_wait(task, NULL) == LAXITY_ERROR_THREAD);
    EXPECT(laxity_task_release(&copy) == LAXITY_ERROR_THREAD);
    EXPECT(copy == task);
    return NULL;
}

static void calls_have_an_order(struct laxity_system *system)
{
    struct laxity_task *task, *second;
    const struct laxity_task_job job = { .index = 7, .release_ns = 5, .deadline_ns = 6 };
    struct laxity_task_job seen;
    pthread_t thread;
    bool is_linked;

    OK(laxity_task_begin(system, &each_second, &task));
    EXPECT(laxity_task_begin(system, &each_second, &second) == LAXITY_ERROR_ORDER);
    EXPECT(second == NULL);
    EXPECT(laxity_task_complete(task) == LAXITY_ERROR_ORDER);
    EXPECT(strstr(laxity_last_error()->message, "task task: completion needs a job"));
    EXPECT(laxity_task_suspend(task) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_enter_section(task) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_leave_section(task) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_prioritize(task, 1, 0) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_release_job(task, NULL) == LAXITY_ERROR_NULL);
    OK(laxity_task_release_job(task, &job));
    EXPECT(laxity_task_release_job(task, &job) == LAXITY_ERROR_ORDER);
    OK(laxity_task_get_job(task, &seen));
    EXPECT(seen.index == 7 && seen.release_ns == 5 && seen.deadline_ns == 6);
    OK(laxity_task_is_linked(task, &is_linked));
    EXPECT(is_linked);
    EXPECT(laxity_task_is_linked(task, NULL) == LAXITY_ERROR_NULL);

    EXPECT(laxity_task_resume(task) == LAXITY_ERROR_ORDER);
    OK(laxity_task_suspend(task));
    OK(laxity_task_is_linked(task, &is_linked));
    EXPECT(!is_linked);
    EXPECT(laxity_task_complete(task) == LAXITY_ERROR_ORDER);
    OK(laxity_task_resume(task));
    OK(laxity_task_prioritize(task, 3, 0));
    OK(laxity_task_enter_section(task));
    OK(laxity_task_enter_section(task));
    OK(laxity_task_leave_section(task));
    OK(laxity_task_leave_section(task));
    OK(laxity_task_complete(task));

    EXPECT(pthread_create(&thread, NULL, of_another_thread, task) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    OK(laxity_task_release(&task));
    EXPECT(task == NULL);
    OK(laxity_task_release(&task));
}

static void what_cannot_be_a_lock_is_refused(const char *directory)
{
    const struct laxity_lock_config odd = { .kind = 7 }, order = { .order = 2 };
    const struct laxity_system_config absent = { .lock_count = 1 }, odd_kind = { .locks = &odd, .lock_count = 1 },
                                      odd_order = { .locks = &order, .lock_count = 1 };
    struct laxity_system *system;

    EXPECT(laxity_system_create_or_attach(directory, "l", &absent, &system) == LAXITY_ERROR_NULL);
    EXPECT(laxity_system_create_or_attach(directory, "l", &odd_kind, &system) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "enum laxity_lock_kind"));
    EXPECT(laxity_system_create_or_attach(directory, "l", &odd_order, &system) == LAXITY_ERROR_VALUE);
}

enum { DOOR, TOKENS };

struct waiter {
    struct laxity_system *system;
    uint64_t deadline_ns; // of the job that waits
    int stage; // 1: it is about to wait; 2: it was granted the lock
};

static void *waits_for_the_door(void *argument)
{
    struct waiter *waiter = argument;
    const struct laxity_task_job job = { .deadline_ns = waiter->deadline_ns };
    struct laxity_task *task;
    uint16_t replica = 9;

    OK(laxity_task_begin(waiter->system, &each_second, &task));
    OK(laxity_task_release_job(task, &job));
    __atomic_store_n(&waiter->stage, 1, __ATOMIC_SEQ_CST);
    OK(laxity_task_lock(task, DOOR, 1 * MS, -1, &replica));
    EXPECT(replica == 0);
    __atomic_store_n(&waiter->stage, 2, __ATOMIC_SEQ_CST);
    OK(laxity_task_unlock_and_complete(task, DOOR));
    EXPECT(laxity_task_complete(task) == LAXITY_ERROR_ORDER);
    OK(laxity_task_release(&task));
    return NULL;
}

static void a_lock_is_granted_when_it_is_unlocked(struct laxity_system *system)
{
    const struct laxity_task_job job = { .deadline_ns = 1000000 * MS };
    const struct timespec moment = { .tv_nsec = 20 * 1000 * 1000 };
    struct waiter waiter = { .system = system, .deadline_ns = 1000 * MS };
    struct laxity_task *task;
    pthread_t thread;
    uint16_t replica = 9;

    OK(laxity_task_begin(system, &each_second, &task));
    EXPECT(laxity_task_lock(task, DOOR, 0, -1, NULL) == LAXITY_ERROR_ORDER); // no job
    OK(laxity_task_release_job(task, &job));
    EXPECT(laxity_task_unlock(task, DOOR) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_lock(task, 2, 0, -1, NULL) == LAXITY_ERROR_ORDER); // no such lock
    EXPECT(laxity_task_lock(task, TOKENS, 0, 2, NULL) == LAXITY_ERROR_ORDER); // no such GPU
    EXPECT(laxity_task_lock(task, TOKENS, 0, 65536, NULL) == LAXITY_ERROR_VALUE);
    OK(laxity_task_lock(task, TOKENS, 0, 1, &replica));
    EXPECT(replica == 1); // the only token of GPU 1
    OK(laxity_task_unlock(task, TOKENS));
    OK(laxity_task_lock(task, DOOR, 0, -1, &replica));
    EXPECT(replica == 0);
    EXPECT(laxity_task_lock(task, DOOR, 0, -1, NULL) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_task_complete(task) == LAXITY_ERROR_ORDER);
    EXPECT(pthread_create(&thread, NULL, waits_for_the_door, &waiter) == 0);
    while (__atomic_load_n(&waiter.stage, __ATOMIC_SEQ_CST) == 0)
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
    EXPECT(__atomic_load_n(&waiter.stage, __ATOMIC_SEQ_CST) == 1);
    OK(laxity_task_unlock(task, DOOR));
    OK(laxity_task_complete(task));
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(waiter.stage == 2);
    OK(laxity_task_release(&task));
}

static uint64_t now_ns(void)
{
    struct timespec now;

    EXPECT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void jobs_follow_each_other_a_period_apart(struct laxity_system *system)
{
    const struct laxity_task_parameters parameters = { .name = "late", .period_ns = 2 * MS, .deadline_ns = 9 * MS };
    const uint64_t start = now_ns() + 5 * MS;
    struct laxity_task *task;
    struct laxity_task_job job, same;

    OK(laxity_task_begin(system, &parameters, &task));
    OK(laxity_task_start_at(task, start));
    for (uint64_t index = 0; index < 5; index++) {
        OK(laxity_task_wait(task, &job));
        EXPECT(job.index == index && job.release_ns == start + index * 2 * MS);
        EXPECT(job.deadline_ns == job.release_ns + 9 * MS); // beyond the period
        EXPECT(now_ns() >= job.release_ns);
        OK(laxity_task_get_job(task, &same));
        EXPECT(memcmp(&job, &same, sizeof(job)) == 0);
    }
    EXPECT(laxity_task_start_at(task, start) == LAXITY_ERROR_ORDER); // numbers would begin again
    OK(laxity_task_release(&task)); // and with it the job
}

// 100 ms of CPU time by 20 ms in 100 ms: the fifth budget comes 400 ms after the release.
static void a_job_waits_for_its_budgets_whatever_it_calls(struct laxity_system *system)
{
    const struct laxity_task_parameters parameters = {
        .name = "greedy", .period_ns = 100 * MS, .budget_ns = 20 * MS, .server = LAXITY_SERVER_CBS_HARD
    };
    struct laxity_task *task;
    struct laxity_task_job job, same;
    struct timespec used;

    OK(laxity_task_begin(system, &parameters, &task));
    OK(laxity_task_wait(task, &job));
    for (int part = 0; part < 10; part++) {
        OK(laxity_task_suspend(task));
        OK(laxity_task_resume(task));
        EXPECT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
        const uint64_t end = (uint64_t)used.tv_sec * 1000 * MS + (uint64_t)used.tv_nsec + 10 * MS;
        do
            EXPECT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0);
        while ((uint64_t)used.tv_sec * 1000 * MS + (uint64_t)used.tv_nsec < end);
    }
    OK(laxity_task_complete(task));
    EXPECT(now_ns() >= job.release_ns + 400 * MS);
    OK(laxity_task_get_job(task, &same));
    EXPECT(memcmp(&job, &same, sizeof(job)) == 0);
    OK(laxity_task_release(&task));
}

int main(int argc, char **argv)
{
    const struct laxity_lock_config locks[] = {
        [DOOR] = { .kind = LAXITY_LOCK_QUEUE, .order = LAXITY_LOCK_ORDER_FIFO },
        [TOKENS] = { .kind = LAXITY_LOCK_TOKENS, .gpus = 2 },
    };
    const struct laxity_system_config one = { .rule = LAXITY_RULE_EDF, .clusters = "0", .tasks = 8, .locks = locks,
                                              .lock_count = 2 },
                                      other = { .rule = LAXITY_RULE_GIVEN, .clusters = "0", .tasks = 8 };
    struct laxity_system *system, *again;
    struct laxity_task *task;
    enum laxity_result result;

    EXPECT(argc == 2);
    what_cannot_be_a_system_is_refused(argv[1]);
    what_cannot_be_a_lock_is_refused(argv[1]);
    OK(laxity_system_create_or_attach(argv[1], "s", &one, &system));
    EXPECT(laxity_system_create_or_attach(argv[1], "s", &other, &again) == LAXITY_ERROR_DIFFERENT);
    OK(laxity_system_attach(argv[1], "s", &again));
    OK(laxity_system_release(&again));
    result = laxity_task_begin(system, &each_second, &task);
    if (result == LAXITY_ERROR_SYSTEM) {
        printf("skipped: %s\n", laxity_last_error()->message);
    } else {
        OK(result);
        OK(laxity_task_release(&task));
        what_cannot_be_a_task_is_refused(system);
        calls_have_an_order(system);
        jobs_follow_each_other_a_period_apart(system);
        a_job_waits_for_its_budgets_whatever_it_calls(system);
        a_lock_is_granted_when_it_is_unlocked(system);
        puts("ok");
    }
    OK(laxity_system_release(&system));
    return 0;
}
