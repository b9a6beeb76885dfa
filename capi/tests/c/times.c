// Releases, deadlines, schedulers and a trace: `times FOLDER` leaves FOLDER/run.lxt. Prints "ok".

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

#define MS UINT64_C(1000000)

static uint64_t now(void)
{
    struct timespec time;

    EXPECT(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

// a, every 2 ms, and b after it. Each remembers so many jobs.
static struct laxity_graph *create(struct laxity_registry *registry, uint32_t jobs)
{
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    OK(laxity_spec_new("times", &spec));
    OK(laxity_spec_node(spec, "a", 2 * MS));
    OK(laxity_spec_node(spec, "b", 0));
    OK(laxity_spec_edge(spec, "a", "b", NULL));
    EXPECT(laxity_spec_recorder(spec, (1 << 20) + 1) == LAXITY_ERROR_SPEC);
    EXPECT(strstr(laxity_last_error()->message, "1048577 jobs"));
    OK(laxity_spec_recorder(spec, jobs));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_spec_release(&spec));
    return graph;
}

// Runs the next job; when it was released.
static uint64_t run(struct laxity_node *node)
{
    struct laxity_job *job;
    uint64_t release, deadline, again;

    OK(laxity_node_wait(node, LAXITY_FOREVER, &job));
    OK(laxity_job_times(job, &release, &deadline));
    EXPECT(deadline == release + 2 * MS);
    OK(laxity_job_times(job, &again, NULL));
    OK(laxity_job_times(job, NULL, NULL));
    EXPECT(again == release);
    OK(laxity_job_complete(job));
    EXPECT(laxity_job_times(job, &release, &deadline) == LAXITY_ERROR_NO_JOB);
    return release;
}

static void jobs_are_released_by_the_clock_and_recorded(struct laxity_registry *registry, const char *path)
{
    struct laxity_graph *graph = create(registry, 16);
    struct laxity_recording *recording;
    struct laxity_collected collected;
    struct laxity_node *a, *b;
    uint64_t start, settled, released;

    OK(laxity_graph_record(graph, path, &recording));
    OK(laxity_graph_claim(graph, "a", &a));
    OK(laxity_graph_claim(graph, "b", &b));
    OK(laxity_node_set_releasing(a, LAXITY_RELEASING_ON_TIME));
    OK(laxity_graph_start(graph, 0, &start)); // settled by the line before
    OK(laxity_graph_start(graph, now() + 1000 * MS, &settled));
    EXPECT(settled == start && start <= now());
    for (uint64_t job = 0; job < 5; job++) {
        EXPECT(run(a) == start + job * 2 * MS);
        EXPECT(now() >= start + job * 2 * MS);
    }
    OK(laxity_recording_collect(recording, NULL));
    released = run(b);
    EXPECT(released >= start);
    OK(laxity_node_set_releasing(b, LAXITY_RELEASING_EARLY));
    for (int job = 1; job < 4; job++)
        EXPECT(run(b) >= released + job * 2 * MS);
    OK(laxity_recording_collect(recording, &collected));
    EXPECT(collected.records > 0);
    OK(laxity_recording_finish(&recording, &collected));
    EXPECT(recording == NULL && collected.missed == 0 && collected.lost == 0);
    OK(laxity_recording_finish(&recording, &collected));
    OK(laxity_node_release(&b));
    OK(laxity_node_release(&a));
    OK(laxity_graph_release(&graph));
}

static void what_linux_refuses_is_said(struct laxity_registry *registry)
{
    struct laxity_graph *graph = create(registry, 16);
    struct laxity_node *node;
    struct laxity_job *job;
    enum laxity_result result;

    OK(laxity_graph_claim(graph, "a", &node));
    EXPECT(laxity_node_set_releasing(node, 2) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "releasing is 2; use one of enum laxity_releasing"));
    EXPECT(laxity_node_schedule_fifo(node, 0) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_node_schedule_fifo(node, 97) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "98"));
    // More than its deadline: refused for every user.
    EXPECT(laxity_node_schedule_deadline(node, 3 * MS) == LAXITY_ERROR_SCHEDULE);
    EXPECT(strcmp(laxity_last_error()->node, "a") == 0);
    result = laxity_node_schedule_fifo(node, 1); // as the user may
    EXPECT(result == LAXITY_OK || result == LAXITY_ERROR_SCHEDULE);
    OK(laxity_node_wait(node, LAXITY_FOREVER, &job));
    EXPECT(laxity_node_schedule_fifo(node, 1) == LAXITY_ERROR_INCOMPLETE);
    EXPECT(laxity_node_set_releasing(node, LAXITY_RELEASING_EARLY) == LAXITY_ERROR_INCOMPLETE);
    OK(laxity_job_complete(job));
    OK(laxity_node_release(&node));
    OK(laxity_graph_release(&graph));
}

static void without_a_recorder_nothing_is_known(struct laxity_registry *registry, const char *path)
{
    struct laxity_graph *graph = create(registry, 0);
    struct laxity_recording *recording = (void *)registry;
    struct laxity_node *node;
    struct laxity_job *job;
    uint64_t release;

    EXPECT(laxity_graph_record(graph, path, &recording) == LAXITY_ERROR_NO_RECORDER && recording == NULL);
    EXPECT(strstr(laxity_last_error()->message, "graph times: it has no recorder"));
    OK(laxity_graph_claim(graph, "a", &node));
    EXPECT(laxity_node_set_releasing(node, LAXITY_RELEASING_ON_TIME) == LAXITY_ERROR_NO_RECORDER);
    OK(laxity_node_wait(node, LAXITY_FOREVER, &job));
    EXPECT(laxity_job_times(job, &release, NULL) == LAXITY_ERROR_NO_RECORDER);
    OK(laxity_job_complete(job));
    OK(laxity_node_release(&node));
    OK(laxity_graph_release(&graph));
}

static void a_file_that_cannot_be_is_no_recording(struct laxity_registry *registry)
{
    struct laxity_graph *graph = create(registry, 16);
    struct laxity_recording *recording;

    EXPECT(laxity_graph_record(graph, "/nonexistent/run.lxt", &recording) == LAXITY_ERROR_FILE && recording == NULL);
    EXPECT(strstr(laxity_last_error()->message, "cannot write /nonexistent/run.lxt: No such file"));
    EXPECT(laxity_graph_record(graph, NULL, &recording) == LAXITY_ERROR_NULL);
    EXPECT(laxity_graph_record(NULL, "run.lxt", &recording) == LAXITY_ERROR_NULL);
    EXPECT(laxity_recording_collect((void *)graph, NULL) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_graph_record(graph, "/dev/full", &recording) == LAXITY_ERROR_FILE);
    OK(laxity_graph_release(&graph));
}

int main(int argc, char **argv)
{
    struct laxity_registry *registry;
    char path[4096];

    EXPECT(argc == 2);
    snprintf(path, sizeof(path), "%s/run.lxt", argv[1]);
    OK(laxity_registry_new(argv[1], &registry));
    without_a_recorder_nothing_is_known(registry, path);
    a_file_that_cannot_be_is_no_recording(registry);
    jobs_are_released_by_the_clock_and_recorded(registry, path);
    what_linux_refuses_is_said(registry); // last, as it may change how this thread is scheduled
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
