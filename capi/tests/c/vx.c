// Vision graphs from C. Takes a directory for names, checks the results, and prints "ok".

#include <laxity.h>
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

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    spawned(argv[1]);
    failed(argv[1]);
    EXPECT(laxity_vx_job_index(NULL, &(uint64_t){ 0 }) == LAXITY_ERROR_NULL);
    puts("ok");
    return 0;
}
