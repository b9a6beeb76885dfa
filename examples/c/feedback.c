// A control loop with a delay: the heating that a controller orders takes effect two steps later.
//
//     room --temperature--> controller          cc feedback.c $(pkg-config --cflags --libs laxity) -pthread -o feedback
//      ^                        |               ./feedback
//      '------- heating --------'
//       back-edge, 2 at the start               Prints the temperature, step by step.
//
// The two initial tokens are the delay: job n of the room reads what job n - 2 of the controller wrote, and zeros before.

#include <laxity.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 20, DELAY = 2, WANTED = 200 };
enum { TEMPERATURE, HEATING }; // the edges, in the order in which they are added

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

static int32_t read_value(struct laxity_job *job, size_t edge)
{
    const void *message;
    int32_t value;

    check(laxity_job_input(job, edge, 0, &message, NULL));
    memcpy(&value, message, sizeof(value));
    return value;
}

static void write_value(struct laxity_job *job, size_t edge, int32_t value)
{
    void *message;

    check(laxity_job_output(job, edge, 0, &message, NULL));
    memcpy(message, &value, sizeof(value));
}

static void *controller(void *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;
    enum laxity_result result;

    check(laxity_graph_claim(graph, "controller", &node));
    while ((result = laxity_node_wait(node, LAXITY_FOREVER, &job)) == LAXITY_OK) {
        write_value(job, HEATING, (WANTED - read_value(job, TEMPERATURE)) / 4);
        check(laxity_job_complete(job));
    }
    if (result != LAXITY_TERMINATED)
        check(result);
    check(laxity_node_release(&node));
    return NULL;
}

static void room(struct laxity_graph *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;
    int32_t temperature = 0;

    check(laxity_graph_claim(graph, "room", &node));
    for (int step = 0; step < STEPS; step++) {
        check(laxity_node_wait(node, LAXITY_FOREVER, &job));
        temperature += read_value(job, HEATING);
        write_value(job, TEMPERATURE, temperature);
        check(laxity_job_complete(job));
        printf("%d%c", temperature, step + 1 < STEPS ? ' ' : '\n');
    }
    check(laxity_node_terminate(&node));
}

int main(void)
{
    const struct laxity_edge forward = { .message_bytes = sizeof(int32_t), .slots = 1 };
    const struct laxity_edge back = {
        .message_bytes = sizeof(int32_t), .slots = DELAY + 1, .initial = DELAY, .back_edge = true,
    };
    struct laxity_registry *registry;
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    pthread_t thread;
    char name[64];

    snprintf(name, sizeof(name), "feedback-%d", (int)getpid());
    check(laxity_registry_new(getenv("LAXITY_DIRECTORY"), &registry));
    check(laxity_spec_new(name, &spec));
    check(laxity_spec_node(spec, "room", 1000 * 1000));
    check(laxity_spec_node(spec, "controller", 0));
    check(laxity_spec_edge(spec, "room", "controller", &forward));
    check(laxity_spec_edge(spec, "controller", "room", &back));
    check(laxity_registry_create(registry, spec, &graph));
    check(laxity_spec_release(&spec));

    if (pthread_create(&thread, NULL, controller, graph) != 0)
        return 1;
    room(graph);
    pthread_join(thread, NULL);
    check(laxity_graph_release(&graph));
    check(laxity_registry_release(&registry));
    return 0;
}
