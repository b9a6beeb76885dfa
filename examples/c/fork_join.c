// Two processes: one splits numbers over two edges, the other joins them four at a time. Start them in any order.
//
//                  left                    cc fork_join.c $(pkg-config --cflags --libs laxity) -o fork_join
//               .-------> sum              ./fork_join split &
//     split ----'            \             ./fork_join join
//          \                  > join
//           `--> count ------'             The second prints "joined 25 times: sum 4950, count 100".
//
// `split` begins a job for each number. `sum` and `count` wait for four tokens (the threshold), and take them away.

#include <inttypes.h>
#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 100, TOGETHER = 4 };
enum { TO_SUM, TO_COUNT, FROM_SUM, FROM_COUNT }; // the edges, in the order in which they are added

static const char *const GRAPH = "fork-join-example";

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

// The next job, or NULL if there will be none. Goes on when a lost process comes back.
static struct laxity_job *next(struct laxity_node *node)
{
    struct laxity_job *job;

    for (;;) {
        enum laxity_result result = laxity_node_wait(node, LAXITY_FOREVER, &job);

        if (result == LAXITY_TERMINATED)
            return NULL;
        if (result != LAXITY_LOST) {
            check(result);
            return job;
        }
        fprintf(stderr, "%s\n", laxity_last_error()->message);
    }
}

static uint64_t read_number(struct laxity_job *job, size_t edge, uint32_t number)
{
    const void *message;
    uint64_t value;

    check(laxity_job_input(job, edge, number, &message, NULL));
    memcpy(&value, message, sizeof(value));
    return value;
}

static void write_number(struct laxity_job *job, size_t edge, uint64_t value)
{
    void *message;

    check(laxity_job_output(job, edge, 0, &message, NULL));
    memcpy(message, &value, sizeof(value));
}

// Both processes describe the graph; the first one creates it.
static struct laxity_graph *open_graph(void)
{
    const struct laxity_edge numbers = {
        .consume = TOGETHER, .message_bytes = sizeof(uint64_t), .slots = 2 * TOGETHER,
    };
    const struct laxity_edge tokens = { .consume = TOGETHER };
    const struct laxity_edge results = { .message_bytes = sizeof(uint64_t), .slots = 2 };
    struct laxity_registry *registry;
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    check(laxity_registry_new(getenv("LAXITY_DIRECTORY"), &registry));
    check(laxity_spec_new(GRAPH, &spec));
    check(laxity_spec_node(spec, "split", 1000 * 1000));
    check(laxity_spec_node(spec, "sum", 0));
    check(laxity_spec_node(spec, "count", 0));
    check(laxity_spec_node(spec, "join", 0));
    check(laxity_spec_edge(spec, "split", "sum", &numbers));
    check(laxity_spec_edge(spec, "split", "count", &tokens));
    check(laxity_spec_edge(spec, "sum", "join", &results));
    check(laxity_spec_edge(spec, "count", "join", &results));
    check(laxity_registry_create_or_attach(registry, spec, &graph));
    check(laxity_spec_release(&spec));
    check(laxity_registry_release(&registry));
    return graph;
}

static void split(struct laxity_graph *graph)
{
    struct laxity_node *node;

    check(laxity_graph_claim(graph, "split", &node));
    for (uint64_t number = 0; number < NUMBERS; number++) {
        struct laxity_job *job = next(node);

        write_number(job, TO_SUM, number);
        check(laxity_job_complete(job));
    }
    // The other process has attached: without it the ring would have filled up. It gets the remaining messages.
    check(laxity_node_terminate(&node));
}

// One thread has three nodes: it knows in which order they can run.
static void join(struct laxity_graph *graph)
{
    struct laxity_node *sum, *count, *both;
    struct laxity_job *job;
    uint64_t times = 0, total = 0, counted = 0;

    check(laxity_graph_claim(graph, "sum", &sum));
    check(laxity_graph_claim(graph, "count", &count));
    check(laxity_graph_claim(graph, "join", &both));
    while ((job = next(sum))) {
        uint64_t partial = 0;

        for (uint32_t i = 0; i < TOGETHER; i++)
            partial += read_number(job, TO_SUM, i);
        write_number(job, FROM_SUM, partial);
        check(laxity_job_complete(job));

        job = next(count);
        write_number(job, FROM_COUNT, TOGETHER);
        check(laxity_job_complete(job));

        job = next(both);
        total += read_number(job, FROM_SUM, 0);
        counted += read_number(job, FROM_COUNT, 0);
        times++;
        check(laxity_job_complete(job));
    }
    check(laxity_node_release(&sum));
    check(laxity_node_release(&count));
    check(laxity_node_release(&both));
    printf("joined %" PRIu64 " times: sum %" PRIu64 ", count %" PRIu64 "\n", times, total, counted);
}

int main(int argc, char **argv)
{
    struct laxity_graph *graph = open_graph();

    if (argc == 2 && strcmp(argv[1], "split") == 0)
        split(graph);
    else if (argc == 2 && strcmp(argv[1], "join") == 0)
        join(graph);
    else
        fprintf(stderr, "usage: %s split|join\n", argv[0]);
    check(laxity_graph_release(&graph));
    return 0;
}
