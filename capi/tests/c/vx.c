// Vision graphs from C. Takes a directory for names, checks the results, and prints "ok".

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static uint32_t numbers, total;

// Writes the frame; there are 6.
static int32_t count(void *argument, struct laxity_vx_job *job)
{
    uint64_t index, *number;
    void *bytes;
    size_t length;

    (void)argument;
    EXPECT(laxity_vx_job_index(job, &index) == LAXITY_OK);
    EXPECT(laxity_vx_job_write(job, numbers, &bytes, &length) == LAXITY_OK && length == sizeof(*number));
    number = bytes;
    *number = index;
    return index < 6 ? 0 : LAXITY_VX_END;
}

// Adds it to the total of the frame before. Fails in frame `argument`.
static int32_t add(void *argument, struct laxity_vx_job *job)
{
    const void *number, *before;
    void *now;
    uint64_t sum, release_ns, deadline_ns;

    EXPECT(laxity_vx_job_times(job, &release_ns, &deadline_ns) == LAXITY_OK && deadline_ns == release_ns + 200000);
    EXPECT(laxity_vx_job_read(job, numbers, 0, &number, NULL) == LAXITY_OK);
    EXPECT(laxity_vx_job_read(job, total, 1, &before, NULL) == LAXITY_OK);
    EXPECT(laxity_vx_job_read(job, total, 2, &before, NULL) == LAXITY_ERROR_ACCESS && before == NULL);
    EXPECT(laxity_vx_job_read(job, total, 1, &before, NULL) == LAXITY_OK);
    EXPECT(laxity_vx_job_write(job, total, &now, NULL) == LAXITY_OK);
    EXPECT(laxity_vx_job_read(job, 77, 0, &before, NULL) == LAXITY_ERROR_ACCESS);
    EXPECT(laxity_vx_job_read(job, total, 1, &before, NULL) == LAXITY_OK);
    sum = *(const uint64_t *)number + *(const uint64_t *)before;
    memcpy(now, &sum, sizeof(sum));
    if (argument && *(const uint64_t *)number == *(const uint64_t *)argument) {
        EXPECT(laxity_vx_job_fail(job, "too much") == LAXITY_OK);
        return 42;
    }
    return 0;
}

static int32_t take(void *argument, struct laxity_vx_job *job)
{
    const void *sum;

    EXPECT(laxity_vx_job_read(job, total, 0, &sum, NULL) == LAXITY_OK);
    *(uint64_t *)argument = *(const uint64_t *)sum;
    return 0;
}

// Adds the numbers from 0 to 5 to 100.
static struct laxity_vx_verified *adder(const char *directory, uint64_t *fatal, uint64_t *result)
{
    const uint64_t hundred = 100;
    struct laxity_registry *registry;
    struct laxity_vx_graph *graph;
    struct laxity_vx_verified *verified;
    uint32_t depth;
    const char *dot;

    EXPECT(laxity_registry_new(directory, &registry) == LAXITY_OK);
    EXPECT(laxity_vx_graph_new(registry, "adder", &graph) == LAXITY_OK);
    EXPECT(laxity_registry_release(&registry) == LAXITY_OK);
    EXPECT(laxity_vx_graph_object(graph, "numbers", sizeof(uint64_t), 1, NULL, &numbers) == LAXITY_OK);
    EXPECT(laxity_vx_graph_object(graph, "total", sizeof(uint64_t), 2, &hundred, &total) == LAXITY_OK);
    const struct laxity_vx_parameter counts[] = { { numbers, false, true, 0 } };
    const struct laxity_vx_parameter adds[] = { { numbers, true, false, 0 },
                                                { total, true, false, 1 },
                                                { total, false, true, 0 } };
    const struct laxity_vx_parameter takes[] = { { total, true, false, 0 } };
    const struct laxity_vx_parameter wrong[] = { { 7, true, false, 0 } };
    EXPECT(laxity_vx_graph_node(graph, "wrong", wrong, 1, add, NULL, 0) == LAXITY_ERROR_NO_OBJECT);
    EXPECT(laxity_vx_graph_node(graph, "wrong", adds, 1, NULL, NULL, 0) == LAXITY_ERROR_NULL);
    EXPECT(laxity_vx_graph_input(graph, counts, 1, count, NULL, 0) == LAXITY_OK);
    EXPECT(laxity_vx_graph_node(graph, "add", adds, 3, add, fatal, 0) == LAXITY_OK);
    EXPECT(laxity_vx_graph_output(graph, takes, 1, take, result, 0) == LAXITY_OK);
    EXPECT(laxity_vx_graph_verify(&graph, &verified) == LAXITY_OK && graph == NULL);
    EXPECT(laxity_vx_verified_depth(verified, &depth) == LAXITY_OK && depth == 3);
    EXPECT(laxity_vx_verified_dot(verified, &dot) == LAXITY_OK && strstr(dot, "add"));
    return verified;
}

static void spawned(const char *directory)
{
    const struct laxity_vx_options options = { .period_ns = 200000 };
    const struct laxity_vx_options unknown = { .period_ns = 200000, .policy = 9 };
    struct laxity_vx_frame frames[3];
    struct laxity_vx_run *run;
    struct laxity_graph *live;
    uint64_t result = 0, begun, completed;
    size_t written;
    struct laxity_vx_verified *verified = adder(directory, NULL, &result);

    EXPECT(laxity_vx_spawn(verified, &unknown, &run) == LAXITY_ERROR_VALUE && run == NULL);
    EXPECT(laxity_vx_spawn(verified, &options, &run) == LAXITY_OK);
    EXPECT(laxity_vx_run_wait(run, LAXITY_FOREVER) == LAXITY_OK);
    EXPECT(laxity_vx_run_counts(run, &begun, &completed) == LAXITY_OK && begun == 6 && completed == 6);
    EXPECT(result == 115);
    EXPECT(laxity_vx_run_frames(run, frames, 3, &written) == LAXITY_OK && written == 3 && frames[2].index == 5);
    EXPECT(laxity_vx_run_graph(run, &live) == LAXITY_OK);
    EXPECT(laxity_graph_release(&live) == LAXITY_OK);
    EXPECT(laxity_vx_run_release(&run) == LAXITY_OK && run == NULL);
    EXPECT(laxity_vx_verified_release(&verified) == LAXITY_OK);
}

static void failed(const char *directory)
{
    const struct laxity_vx_options options = { .period_ns = 200000 };
    uint64_t fatal = 3, result;
    struct laxity_vx_run *run;
    struct laxity_vx_verified *verified = adder(directory, &fatal, &result);

    EXPECT(laxity_vx_spawn(verified, &options, &run) == LAXITY_OK);
    EXPECT(laxity_vx_run_wait(run, LAXITY_FOREVER) == LAXITY_ERROR_FAILED);
    EXPECT(strcmp(laxity_last_error()->node, "add") == 0);
    EXPECT(strcmp(laxity_last_error()->message,
                  "graph adder: node add, frame 3: too much (VX_ERROR_GRAPH_ABANDONED)") == 0);
    // The verified graph may go first.
    EXPECT(laxity_vx_verified_release(&verified) == LAXITY_OK);
    EXPECT(laxity_vx_run_release(&run) == LAXITY_OK);
}

static struct laxity_vx_run *own_run;
static int has_tried;

// A job is for the thread that runs its kernel.
static void *of_another_thread(void *job)
{
    uint64_t index;

    EXPECT(laxity_vx_job_index(job, &index) == LAXITY_ERROR_THREAD);
    EXPECT(laxity_vx_job_fail(job, "another") == LAXITY_ERROR_THREAD);
    return NULL;
}

// The first frame may be there before the run's handle.
static int32_t wait_for_itself(void *argument, struct laxity_vx_job *job)
{
    struct laxity_vx_run *run = __atomic_load_n(&own_run, __ATOMIC_ACQUIRE);
    uint64_t completed;
    pthread_t other;

    (void)argument;
    if (run == NULL)
        return 0;
    EXPECT(laxity_vx_run_wait(run, LAXITY_FOREVER) == LAXITY_ERROR_INSIDE);
    EXPECT(laxity_vx_run_wait_for_frames(run, 1000000, 1, &completed) == LAXITY_ERROR_INSIDE);
    EXPECT(laxity_vx_run_wait(run, 0) == LAXITY_TIMED_OUT);
    EXPECT(laxity_vx_run_release(&run) == LAXITY_ERROR_INSIDE && run != NULL);
    EXPECT(pthread_create(&other, NULL, of_another_thread, job) == 0 && pthread_join(other, NULL) == 0);
    __atomic_store_n(&has_tried, 1, __ATOMIC_RELEASE);
    OK(laxity_vx_run_stop(run));
    return 0;
}

static int32_t nothing(void *argument, struct laxity_vx_job *job)
{
    (void)argument;
    (void)job;
    return 0;
}

static struct laxity_vx_verified *of_one_node(const char *directory, laxity_vx_kernel kernel)
{
    struct laxity_registry *registry;
    struct laxity_vx_graph *graph;
    struct laxity_vx_verified *verified;

    OK(laxity_registry_new(directory, &registry));
    OK(laxity_vx_graph_new(registry, "one", &graph));
    OK(laxity_vx_graph_node(graph, "node", NULL, 0, kernel, NULL, 0));
    OK(laxity_vx_graph_verify(&graph, &verified));
    OK(laxity_registry_release(&registry));
    return verified;
}

static void kernels_do_not_wait_for_their_own_run(const char *directory)
{
    const struct laxity_vx_options options = { .period_ns = 200000 };
    struct laxity_vx_verified *verified = of_one_node(directory, wait_for_itself);
    struct laxity_vx_run *run;

    OK(laxity_vx_spawn(verified, &options, &run));
    __atomic_store_n(&own_run, run, __ATOMIC_RELEASE);
    OK(laxity_vx_run_wait(run, LAXITY_FOREVER));
    EXPECT(__atomic_load_n(&has_tried, __ATOMIC_ACQUIRE) == 1);
    OK(laxity_vx_run_release(&run));
    OK(laxity_vx_verified_release(&verified));
}

// It would not begin before the test is ended by force.
static void a_run_that_is_stopped_before_its_first_release_just_ends(const char *directory)
{
    const struct laxity_vx_options never = { .period_ns = 200000, .start_ns = UINT64_MAX };
    struct laxity_vx_verified *verified = of_one_node(directory, nothing);
    struct laxity_vx_run *run;
    uint64_t begun;

    OK(laxity_vx_spawn(verified, &never, &run));
    EXPECT(laxity_vx_run_wait(run, 1000000) == LAXITY_TIMED_OUT);
    OK(laxity_vx_run_stop(run));
    OK(laxity_vx_run_wait(run, LAXITY_FOREVER));
    OK(laxity_vx_run_counts(run, &begun, NULL));
    EXPECT(begun == 0);
    OK(laxity_vx_run_release(&run));
    OK(laxity_vx_verified_release(&verified));
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    spawned(argv[1]);
    kernels_do_not_wait_for_their_own_run(argv[1]);
    a_run_that_is_stopped_before_its_first_release_just_ends(argv[1]);
    failed(argv[1]);
    EXPECT(laxity_vx_job_index(NULL, &(uint64_t){ 0 }) == LAXITY_ERROR_NULL);
    puts("ok");
    return 0;
}
