// Each mistake gets a number and a text, and none crashes. Prints "ok".

#include <laxity.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static int equal(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static int32_t no_kernel(void *argument, struct laxity_vx_job *job)
{
    (void)argument;
    (void)job;
    return 0;
}

static void null_and_wrong_handles_are_refused(struct laxity_registry *registry)
{
    struct laxity_graph *graph = (void *)registry;
    struct laxity_node *node = (void *)8;
    struct laxity_job *job;
    uint64_t words[4] = { 0 }, tokens;

    EXPECT(equal(laxity_result_text(LAXITY_ERROR_NULL), "an argument is NULL"));
    EXPECT(laxity_graph_claim(NULL, "a", &node) == LAXITY_ERROR_NULL);
    EXPECT(equal(laxity_last_error()->message, "graph is NULL; pass one"));
    EXPECT(node == NULL);
    EXPECT(laxity_graph_claim(graph, "a", &node) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_graph_tokens((void *)words, 0, &tokens) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_graph_tokens((void *)((char *)words + 1), 0, &tokens) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_graph_release(&graph) == LAXITY_ERROR_HANDLE);
    EXPECT(graph == (void *)registry);
    EXPECT(laxity_graph_release(NULL) == LAXITY_ERROR_NULL);
    EXPECT(laxity_registry_new(NULL, NULL) == LAXITY_ERROR_NULL);
    EXPECT(laxity_registry_attach(registry, NULL, 0, &graph) == LAXITY_ERROR_NULL);
    EXPECT(laxity_registry_attach(registry, "\xff", 0, &graph) == LAXITY_ERROR_TEXT);
    EXPECT(laxity_registry_attach(registry, "a/b", 0, &graph) == LAXITY_ERROR_NAME);
    EXPECT(laxity_registry_attach(registry, "missing", 0, &graph) == LAXITY_ERROR_NO_GRAPH);
    EXPECT(laxity_registry_attach(registry, "missing", 1000 * 1000, &graph) == LAXITY_ERROR_NO_GRAPH);
    EXPECT(graph == NULL);
    EXPECT(laxity_node_wait(NULL, 0, &job) == LAXITY_ERROR_NULL);
    EXPECT(laxity_job_complete(NULL) == LAXITY_ERROR_NULL);
}

static void what_cannot_be_is_named(struct laxity_registry *registry)
{
    const struct laxity_edge small = { .produce = 3, .consume = 2, .threshold = 5, .message_bytes = 8, .slots = 6 };
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    OK(laxity_spec_new("small", &spec));
    OK(laxity_spec_node(spec, "a", 1000));
    OK(laxity_spec_node(spec, "b", 0));
    EXPECT(laxity_spec_edge(spec, "a", "c", NULL) == LAXITY_ERROR_NO_NODE);
    EXPECT(equal(laxity_last_error()->node, "c"));
    OK(laxity_spec_edge(spec, "a", "b", &small));
    EXPECT(laxity_registry_create(registry, spec, &graph) == LAXITY_ERROR_SPEC);
    EXPECT(equal(laxity_last_error()->from, "a") && equal(laxity_last_error()->to, "b"));
    EXPECT(strstr(laxity_last_error()->message, "6 messages fit but 7 must"));
    OK(laxity_spec_node(spec, "b", 0));
    EXPECT(laxity_registry_create(registry, spec, &graph) == LAXITY_ERROR_SPEC);
    EXPECT(equal(laxity_last_error()->node, "b"));
    OK(laxity_spec_release(&spec));
    EXPECT(spec == NULL);
    OK(laxity_spec_release(&spec));
}

// a --ring of 2--> b --counter, 3 at a time--> c, and c --back, 1 at the start--> a.
static struct laxity_graph *create(struct laxity_registry *registry)
{
    const struct laxity_edge ring = { .message_bytes = 8, .slots = 2 };
    const struct laxity_edge threes = { .consume = 3 };
    const struct laxity_edge back = { .produce = 3, .initial = 4, .back_edge = true };
    struct laxity_spec *spec;
    struct laxity_graph *graph, *again;

    OK(laxity_spec_new("graph", &spec));
    OK(laxity_spec_node(spec, "a", 1000 * 1000));
    OK(laxity_spec_node(spec, "b", 0));
    OK(laxity_spec_node(spec, "c", 0));
    OK(laxity_spec_edge(spec, "a", "b", &ring));
    OK(laxity_spec_edge(spec, "b", "c", &threes));
    OK(laxity_spec_edge(spec, "c", "a", &back));
    OK(laxity_registry_create(registry, spec, &graph));
    EXPECT(laxity_registry_create(registry, spec, &again) == LAXITY_ERROR_EXISTS);
    OK(laxity_registry_create_or_attach(registry, spec, &again));
    OK(laxity_graph_release(&again));
    OK(laxity_spec_node(spec, "d", 1000 * 1000));
    EXPECT(laxity_registry_create_or_attach(registry, spec, &again) == LAXITY_ERROR_DIFFERENT);
    OK(laxity_spec_release(&spec));
    return graph;
}

static void a_job_is_begun_and_completed_once(struct laxity_registry *registry)
{
    struct laxity_graph *graph = create(registry);
    struct laxity_node *a, *b, *again;
    struct laxity_job *job;
    struct laxity_status status;
    const void *input;
    void *output;
    const char *name;
    size_t edge, length;
    uint64_t tokens, index;
    bool is_resumed;

    OK(laxity_graph_claim(graph, "a", &a));
    OK(laxity_graph_claim(graph, NULL, &b));
    OK(laxity_node_name(b, &name));
    EXPECT(equal(name, "b"));
    EXPECT(laxity_graph_claim(graph, "a", &again) == LAXITY_ERROR_CLAIMED);
    EXPECT(laxity_last_error()->pid == (uint32_t)getpid() && equal(laxity_last_error()->node, "a"));
    EXPECT(laxity_graph_claim(graph, "x", &again) == LAXITY_ERROR_NO_NODE);
    OK(laxity_graph_edge(graph, "a", "b", &edge));
    EXPECT(edge == 0);
    EXPECT(laxity_graph_edge(graph, "a", "c", &edge) == LAXITY_ERROR_NO_EDGE);
    OK(laxity_graph_tokens(graph, 2, &tokens));
    EXPECT(tokens == 4);
    EXPECT(laxity_graph_tokens(graph, 3, &tokens) == LAXITY_ERROR_NO_EDGE);

    EXPECT(laxity_node_wait(b, 0, &job) == LAXITY_TIMED_OUT);
    EXPECT(laxity_node_wait(b, 1000, &job) == LAXITY_TIMED_OUT);
    EXPECT(job == NULL && laxity_last_error()->result == LAXITY_TIMED_OUT && equal(laxity_last_error()->node, "b"));
    OK(laxity_node_wait(a, 0, &job));
    EXPECT(laxity_node_wait(a, 0, &(struct laxity_job *){ NULL }) == LAXITY_ERROR_INCOMPLETE);
    OK(laxity_job_is_resumed(job, &is_resumed));
    EXPECT(!is_resumed);
    EXPECT(laxity_job_output(job, 0, 1, &output, &length) == LAXITY_ERROR_NO_MESSAGE);
    EXPECT(equal(laxity_last_error()->from, "a") && equal(laxity_last_error()->to, "b"));
    EXPECT(laxity_job_output(job, 2, 0, &output, &length) == LAXITY_ERROR_NO_RING && output == NULL);
    EXPECT(laxity_job_input(job, 0, 0, &input, &length) == LAXITY_ERROR_NO_RING && input == NULL);
    OK(laxity_job_output(job, 0, 0, &output, &length));
    EXPECT(length == 8);
    memcpy(output, "abc", 3);
    EXPECT(laxity_job_truncate(job, 0, 0, 9) == LAXITY_ERROR_TOO_LONG);
    OK(laxity_job_truncate(job, 0, 0, 3));
    OK(laxity_job_complete(job));
    EXPECT(laxity_job_complete(job) == LAXITY_ERROR_NO_JOB);
    EXPECT(laxity_job_index(job, &index) == LAXITY_ERROR_NO_JOB);

    OK(laxity_node_wait(b, LAXITY_FOREVER, &job));
    OK(laxity_job_input(job, 0, 0, &input, &length));
    EXPECT(input == output && length == 3 && memcmp(input, "abc", 3) == 0);
    OK(laxity_graph_status(graph, "b", &status));
    EXPECT(status.ownership == LAXITY_CLAIMED && status.pid == (uint32_t)getpid());
    EXPECT(status.started == 1 && status.completed == 0 && !status.has_terminated);
    OK(laxity_node_release(&b)); // in the middle of its job
    EXPECT(b == NULL);
    OK(laxity_node_release(&b));
    OK(laxity_graph_claim(graph, "b", &b));
    OK(laxity_node_wait(b, 0, &job));
    OK(laxity_job_is_resumed(job, &is_resumed));
    OK(laxity_job_index(job, &index));
    OK(laxity_job_input(job, 0, 0, &input, &length));
    EXPECT(is_resumed && index == 0 && input == output && length == 3);
    OK(laxity_job_complete(job));

    OK(laxity_node_terminate(&a));
    EXPECT(laxity_node_wait(b, LAXITY_FOREVER, &job) == LAXITY_TERMINATED);
    EXPECT(equal(laxity_last_error()->node, "a") && equal(laxity_last_error()->to, "b"));
    OK(laxity_graph_release(&graph)); // in any order
    OK(laxity_node_release(&b));
}

static void *wait_for_ever(void *node)
{
    struct laxity_job *job;

    EXPECT(laxity_node_wait(node, LAXITY_FOREVER, &job) == LAXITY_TERMINATED);
    return NULL;
}

static void a_second_thread_is_refused(struct laxity_registry *registry)
{
    struct laxity_graph *graph = create(registry);
    struct laxity_node *node, *same;
    struct laxity_job *job;
    pthread_t thread;
    enum laxity_result result;

    OK(laxity_graph_claim(graph, "c", &node));
    same = node;
    EXPECT(pthread_create(&thread, NULL, wait_for_ever, node) == 0);
    // This thread may use the node until the other one waits.
    while ((result = laxity_node_wait(node, 0, &job)) == LAXITY_TIMED_OUT)
        usleep(100);
    EXPECT(result == LAXITY_ERROR_BUSY);
    EXPECT(laxity_node_release(&same) == LAXITY_ERROR_BUSY && same == node);
    OK(laxity_graph_terminate(graph, "c"));
    pthread_join(thread, NULL);
    OK(laxity_node_release(&node));
    OK(laxity_graph_release(&graph));
}

static void a_killed_process_is_heard_of(struct laxity_registry *registry, const char *directory)
{
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    struct laxity_node *b;
    struct laxity_job *job;
    pid_t child;
    size_t removed;
    int pipes[2];
    char byte;

    OK(laxity_spec_new("deaths", &spec));
    OK(laxity_spec_node(spec, "a", 1000));
    OK(laxity_spec_node(spec, "b", 0));
    OK(laxity_spec_edge(spec, "a", "b", NULL));
    EXPECT(pipe(pipes) == 0);
    child = fork();
    if (child == 0) {
        struct laxity_node *a;

        OK(laxity_registry_new(directory, &registry));
        OK(laxity_registry_create(registry, spec, &graph));
        OK(laxity_graph_claim(graph, "a", &a));
        EXPECT(write(pipes[1], "!", 1) == 1);
        pause();
    }
    close(pipes[1]); // if the child fails this read does, too
    EXPECT(read(pipes[0], &byte, 1) == 1);
    OK(laxity_registry_attach(registry, "deaths", LAXITY_FOREVER, &graph));
    OK(laxity_graph_claim(graph, "b", &b));
    kill(child, SIGKILL);
    EXPECT(laxity_node_wait(b, LAXITY_FOREVER, &job) == LAXITY_LOST);
    EXPECT(equal(laxity_last_error()->node, "a") && laxity_last_error()->pid == (uint32_t)child);
    EXPECT(equal(laxity_last_error()->from, "a") && equal(laxity_last_error()->to, "b"));
    waitpid(child, NULL, 0);
    OK(laxity_node_release(&b));
    OK(laxity_graph_release(&graph));

    // No other process is left to lose this message with.
    child = fork();
    if (child == 0) {
        OK(laxity_registry_create(registry, spec, &graph));
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    OK(laxity_registry_gc(registry, &removed));
    EXPECT(removed == 1);
    OK(laxity_spec_release(&spec));
}

static void objects_are_used_as_declared(struct laxity_registry *registry)
{
    const struct laxity_parameter writes[] = { { .object = "image", .writes = true } };
    const struct laxity_parameter reads[] = { { .object = "image", .reads = true }, { "past", true, false, 2 } };
    const struct laxity_parameter keeps[] = { { .object = "image", .reads = true }, { .object = "past", .writes = true } };
    const struct laxity_parameter neither = { .object = "image" }, rewrites = { "past", true, true, 1 };
    const struct laxity_parameter unknown = { .object = "imag", .reads = true }, nameless = { NULL, true, false, 0 };
    const uint8_t initial[] = { 1, 2, 3 };
    struct laxity_pipeline *pipeline;
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    struct laxity_node *node;
    struct laxity_job *job;
    const void *input;
    void *output;
    size_t length;
    const uint64_t bounds[] = { 900 * 1000, 900 * 1000, 1100 * 1000 };
    const struct laxity_edge queue = { .message_bytes = 8, .slots = 4, .channel = LAXITY_CHANNEL_QUEUE };
    const struct laxity_edge pairs = { .produce = 2 };
    uint32_t depth, replicas;

    OK(laxity_pipeline_new("objects", 1000 * 1000, &pipeline));
    OK(laxity_pipeline_object(pipeline, "image", 100));
    OK(laxity_pipeline_delay(pipeline, "past", sizeof(initial), 2, initial));
    EXPECT(laxity_pipeline_node(pipeline, "write", &neither, 1) == LAXITY_ERROR_SPEC);
    EXPECT(strstr(laxity_last_error()->message, "object image neither reads nor writes"));
    EXPECT(laxity_pipeline_node(pipeline, "write", &rewrites, 1) == LAXITY_ERROR_SPEC);
    EXPECT(laxity_pipeline_node(pipeline, "write", &nameless, 1) == LAXITY_ERROR_NULL);
    EXPECT(laxity_pipeline_node(pipeline, "write", NULL, 1) == LAXITY_ERROR_NULL);
    OK(laxity_pipeline_node(pipeline, "write", writes, 1));
    OK(laxity_pipeline_node(pipeline, "read", reads, 2));
    EXPECT(laxity_pipeline_build(pipeline, 2, &spec) == LAXITY_ERROR_SPEC);
    EXPECT(spec == NULL && equal(laxity_last_error()->node, "read"));
    OK(laxity_pipeline_node(pipeline, "keep", keeps, 2));
    EXPECT(laxity_pipeline_edge(pipeline, "read", "keep", &pairs) == LAXITY_ERROR_SPEC);
    EXPECT(equal(laxity_last_error()->from, "read") && strstr(laxity_last_error()->message, "one token a job"));
    OK(laxity_pipeline_edge(pipeline, "read", "keep", NULL));
    OK(laxity_pipeline_edge(pipeline, "write", "keep", &queue));
    OK(laxity_pipeline_depth(pipeline, &depth));
    EXPECT(depth == 3);
    // 2.9 ms pass from a release of `write`, which is every millisecond, to the end of the job of `keep`.
    OK(laxity_pipeline_replicas_needed(pipeline, bounds, 3, &replicas));
    EXPECT(replicas == 3);
    EXPECT(laxity_pipeline_replicas_needed(pipeline, bounds, 2, &replicas) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_pipeline_replicas_needed(pipeline, NULL, 3, &replicas) == LAXITY_ERROR_NULL);
    EXPECT(laxity_pipeline_build(pipeline, 0, &spec) == LAXITY_ERROR_SPEC);
    OK(laxity_pipeline_build(pipeline, 2, &spec));
    EXPECT(laxity_spec_node(spec, "more", 0) == LAXITY_ERROR_SPEC);
    EXPECT(laxity_spec_edge(spec, "write", "read", NULL) == LAXITY_ERROR_SPEC);
    OK(laxity_pipeline_node(pipeline, "stray", &unknown, 1));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_spec_release(&spec));
    EXPECT(laxity_pipeline_build(pipeline, 2, &spec) == LAXITY_ERROR_SPEC);
    EXPECT(equal(laxity_last_error()->node, "stray") && strstr(laxity_last_error()->message, "no object imag;"));
    OK(laxity_pipeline_release(&pipeline));

    OK(laxity_graph_claim(graph, "write", &node));
    OK(laxity_node_wait(node, 0, &job));
    EXPECT(laxity_job_read(job, "image", 0, &input, NULL) == LAXITY_ERROR_ACCESS);
    EXPECT(input == NULL && equal(laxity_last_error()->node, "write"));
    EXPECT(laxity_job_write(job, "past", &output, NULL) == LAXITY_ERROR_ACCESS);
    EXPECT(laxity_job_write(job, "imag", &output, NULL) == LAXITY_ERROR_NO_OBJECT);
    OK(laxity_job_output(job, 1, 0, &output, &length));
    EXPECT(length == 8);
    OK(laxity_job_write(job, "image", &output, &length));
    EXPECT(length == 100);
    memset(output, 7, length);
    OK(laxity_job_complete(job));
    EXPECT(laxity_job_write(job, "image", &output, NULL) == LAXITY_ERROR_NO_JOB);
    OK(laxity_node_release(&node));

    OK(laxity_graph_claim(graph, "read", &node));
    OK(laxity_node_wait(node, 0, &job));
    OK(laxity_job_read(job, "image", 0, &input, &length));
    EXPECT(length == 100 && ((const uint8_t *)input)[99] == 7);
    OK(laxity_job_read(job, "past", 2, &input, &length));
    EXPECT(length == sizeof(initial) && memcmp(input, initial, length) == 0);
    EXPECT(laxity_job_read(job, "past", 1, &input, NULL) == LAXITY_ERROR_ACCESS);
    EXPECT(laxity_job_write(job, "image", &output, NULL) == LAXITY_ERROR_ACCESS);
    OK(laxity_node_release(&node));
    OK(laxity_graph_release(&graph));
}

static void sizes_beyond_all_memory_are_refused(struct laxity_registry *registry)
{
    const struct laxity_parameter parameter = { "image", true, false, 0 };
    const struct laxity_lock_config lock = { 0 };
    const struct laxity_system_config system_config = { .clusters = "0", .locks = &lock, .lock_count = SIZE_MAX };
    const struct laxity_vx_parameter vx_parameter = { 0 };
    const uint64_t bound = 1;
    const size_t edge = 0;
    struct laxity_system *system;
    struct laxity_pipeline *pipeline;
    struct laxity_vx_graph *vision;
    struct laxity_spec *spec;
    uint32_t replicas;

    EXPECT(laxity_system_create_or_attach(NULL, "sizes", &system_config, &system) == LAXITY_ERROR_VALUE);
    OK(laxity_spec_new("sizes", &spec));
    EXPECT(laxity_spec_swapping(spec, &edge, SIZE_MAX / 2) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "edges has 9223372036854775807 values"));
    OK(laxity_spec_release(&spec));
    OK(laxity_pipeline_new("sizes", 1000000, &pipeline));
    EXPECT(laxity_pipeline_node(pipeline, "node", &parameter, SIZE_MAX) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_pipeline_delay(pipeline, "past", SIZE_MAX, 1, &bound) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_pipeline_replicas_needed(pipeline, &bound, SIZE_MAX, &replicas) == LAXITY_ERROR_VALUE);
    OK(laxity_pipeline_release(&pipeline));
    OK(laxity_vx_graph_new(registry, "sizes", &vision));
    EXPECT(laxity_vx_graph_node(vision, "node", &vx_parameter, SIZE_MAX, no_kernel, NULL, 0) == LAXITY_ERROR_VALUE);
    OK(laxity_vx_graph_release(&vision));
}

int main(int argc, char **argv)
{
    struct laxity_registry *registry;

    EXPECT(argc == 2);
    EXPECT(laxity_last_error()->result == LAXITY_OK);
    OK(laxity_registry_new(argv[1], &registry));
    // First, before the library starts threads, which a forked child would not have.
    a_killed_process_is_heard_of(registry, argv[1]);
    null_and_wrong_handles_are_refused(registry);
    sizes_beyond_all_memory_are_refused(registry);
    what_cannot_be_is_named(registry);
    a_job_is_begun_and_completed_once(registry);
    a_second_thread_is_refused(registry);
    objects_are_used_as_declared(registry);
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
