// Two periodic tasks on one CPU, by their deadlines: the job of the second one takes longer than the first one's period, and
// is preempted.
//
//                                 cc periodic.c $(pkg-config --cflags --libs laxity) -pthread -o periodic
//                                 ./periodic
//
// Needs the permission for SCHED_FIFO (as root, or `ulimit -r 99`). Prints "fast: 50 jobs" and "slow: 5 jobs".

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
    struct laxity_system *system;
    const char *name;
    uint64_t period_ns, execution_ns, start_ns;
    int jobs;
};

static void *run(void *argument)
{
    const struct work *work = argument;
    const struct laxity_task_parameters parameters = {
        .name = work->name, .period_ns = work->period_ns, .wcet_ns = work->execution_ns
    };
    struct laxity_task *task;

    check(laxity_task_begin(work->system, &parameters, &task));
    check(laxity_task_start_at(task, work->start_ns)); // both are released together
    for (int job = 0; job < work->jobs; job++) {
        check(laxity_task_wait(task, NULL)); // the last job is complete, the next one released
        execute(work->execution_ns);
    }
    check(laxity_task_release(&task)); // the thread is scheduled as before
    printf("%s: %d jobs\n", work->name, work->jobs);
    return NULL;
}

int main(void)
{
    const struct laxity_system_config config = { .rule = LAXITY_RULE_EDF, .clusters = "0" };
    struct laxity_system *system;
    struct work works[] = { { .name = "fast", .period_ns = 10 * MS, .execution_ns = 1 * MS, .jobs = 50 },
                            { .name = "slow", .period_ns = 100 * MS, .execution_ns = 15 * MS, .jobs = 5 } };
    pthread_t threads[2];
    uint64_t start_ns;

    // All processes state the same; the first one creates the system.
    check(laxity_system_create_or_attach(getenv("LAXITY_DIRECTORY"), "periodic-example", &config, &system));
    start_ns = clock_ns(CLOCK_MONOTONIC) + 20 * MS;
    for (int thread = 0; thread < 2; thread++) {
        works[thread].system = system;
        works[thread].start_ns = start_ns;
        pthread_create(&threads[thread], NULL, run, &works[thread]);
    }
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    check(laxity_system_release(&system));
    return 0;
}
