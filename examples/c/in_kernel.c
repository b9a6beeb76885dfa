// Two periodic tasks of the scheduler in the kernel (docs/guides/kernel.md), which share a lock whose holder inherits.
//
//                                 cc in_kernel.c $(pkg-config --cflags --libs laxity) -pthread -o in_kernel
//                                 sudo laxity sched start &    # a kernel with sched_ext
//                                 sudo ./in_kernel
//
// Prints "fast: 50 jobs, 50 by Laxity" and "slow: 5 jobs, 5 by Laxity"; fewer if the scheduler ends meanwhile.

// For the clock, where the compiler is told to keep to the standard of C.
#define _POSIX_C_SOURCE 200809L

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS (1000 * 1000ull)

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

// Where a real program computes, this one counts its own CPU time.
static void execute(uint64_t span_ns)
{
    uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + span_ns;

    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

struct work {
    struct laxity_kernel_scheduler *kernel;
    struct laxity_kernel_lock *lock;
    const char *name;
    uint64_t period_ns, execution_ns, start_ns;
    int jobs;
};

static void *run(void *argument)
{
    const struct work *work = argument;
    const struct laxity_kernel_parameters parameters = { .name = work->name,
                                                         .cluster = -1,
                                                         .period_ns = work->period_ns,
                                                         .wcet_ns = 2 * work->execution_ns,
                                                         .start_ns = work->start_ns };
    struct laxity_kernel_task *task;
    struct laxity_kernel_job job;
    int scheduled = 0;

    check(laxity_kernel_task_begin(work->kernel, &parameters, &task));
    for (int number = 0; number < work->jobs; number++) {
        check(laxity_kernel_task_wait(task, &job)); // the last job is complete, the next one released
        scheduled += job.is_scheduled;
        execute(work->execution_ns);
        check(laxity_kernel_task_lock(task, work->lock));
        execute(work->execution_ns);
        check(laxity_kernel_task_unlock(task, work->lock));
    }
    check(laxity_kernel_task_release(&task)); // the thread is scheduled like all others
    printf("%s: %d jobs, %d by Laxity\n", work->name, work->jobs, scheduled);
    return NULL;
}

int main(void)
{
    struct laxity_kernel_scheduler *kernel;
    struct laxity_kernel_lock *lock;
    struct work works[] = { { .name = "fast", .period_ns = 20 * MS, .execution_ns = 1 * MS, .jobs = 50 },
                            { .name = "slow", .period_ns = 200 * MS, .execution_ns = 10 * MS, .jobs = 5 } };
    pthread_t threads[2];
    uint64_t start_ns;

    check(laxity_kernel_scheduler_join(&kernel));
    check(laxity_kernel_lock_create(&lock));
    start_ns = clock_ns(CLOCK_MONOTONIC) + 1000 * MS;
    for (int thread = 0; thread < 2; thread++) {
        works[thread].kernel = kernel;
        works[thread].lock = lock;
        works[thread].start_ns = start_ns;
        pthread_create(&threads[thread], NULL, run, &works[thread]);
    }
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    check(laxity_kernel_lock_release(&lock));
    check(laxity_kernel_scheduler_release(&kernel));
    return 0;
}
