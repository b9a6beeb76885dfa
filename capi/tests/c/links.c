// Messages through every kind of channel, by poll(). Prints "ok".

#include <laxity.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

#define LENGTH 6000

static struct laxity_spec *describe(const struct laxity_edge *edge)
{
    struct laxity_spec *spec;

    OK(laxity_spec_new("links", &spec));
    OK(laxity_spec_node(spec, "a", 1000 * 1000));
    OK(laxity_spec_node(spec, "b", 0));
    OK(laxity_spec_edge(spec, "a", "b", edge));
    return spec;
}

static void send(struct laxity_node *node, char value)
{
    struct laxity_job *job;
    void *message;
    size_t length;

    OK(laxity_node_wait(node, LAXITY_FOREVER, &job));
    OK(laxity_job_output(job, 0, 0, &message, &length));
    EXPECT(length == LENGTH);
    memset(message, value, length);
    OK(laxity_job_truncate(job, 0, 0, LENGTH - (size_t)value));
    OK(laxity_job_complete(job));
}

static void receive(struct laxity_node *node, char value)
{
    struct laxity_job *job;
    const void *message;
    size_t length;

    OK(laxity_node_wait(node, 0, &job));
    OK(laxity_job_input(job, 0, 0, &message, &length));
    EXPECT(length == LENGTH - (size_t)value);
    for (size_t i = 0; i < length; i++)
        EXPECT(((const char *)message)[i] == value);
    OK(laxity_job_complete(job));
}

static void messages_are_polled_for(struct laxity_registry *registry, uint32_t channel)
{
    const struct laxity_edge edge = { .message_bytes = LENGTH, .slots = 3, .channel = channel };
    struct laxity_spec *spec = describe(&edge);
    struct laxity_graph *graph;
    struct laxity_node *a, *b;
    struct laxity_job *job;
    struct pollfd poll_b = { .events = POLLIN };

    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_graph_claim(graph, "b", &b));
    OK(laxity_graph_claim(graph, "a", &a));
    OK(laxity_node_poll_fd(b, &poll_b.fd));
    EXPECT(laxity_node_wait(b, 0, &job) == LAXITY_TIMED_OUT);
    EXPECT(poll(&poll_b, 1, 0) == 0);
    for (char value = 1; value < 3; value++)
        send(a, value);
    for (char value = 1; value < 3; value++) {
        EXPECT(poll(&poll_b, 1, -1) == 1);
        receive(b, value);
    }
    EXPECT(laxity_node_wait(b, 0, &job) == LAXITY_TIMED_OUT);
    EXPECT(poll(&poll_b, 1, 0) == 0);
    OK(laxity_node_terminate(&a));
    EXPECT(poll(&poll_b, 1, -1) == 1);
    EXPECT(laxity_node_wait(b, 0, &job) == LAXITY_TERMINATED);
    OK(laxity_node_release(&b));
    OK(laxity_graph_release(&graph));
    OK(laxity_spec_release(&spec));
}

static void what_cannot_be_is_named(struct laxity_registry *registry)
{
    struct laxity_edge edge = { .message_bytes = 8, .slots = 2, .channel = 4 };
    struct laxity_spec *spec = describe(NULL);
    struct laxity_graph *graph;

    EXPECT(laxity_spec_edge(spec, "a", "b", &edge) == LAXITY_ERROR_SPEC);
    EXPECT(strstr(laxity_last_error()->message, "enum laxity_channel"));
    edge.channel = LAXITY_CHANNEL_TCP;
    edge.address = "127.0.0.1";
    EXPECT(laxity_spec_edge(spec, "a", "b", &edge) == LAXITY_ERROR_SPEC);
    EXPECT(strstr(laxity_last_error()->message, "127.0.0.1:4000"));
    OK(laxity_spec_release(&spec));
    edge = (struct laxity_edge){ .message_bytes = 1 << 20, .slots = 3000, .channel = LAXITY_CHANNEL_FIFO };
    spec = describe(&edge);
    EXPECT(laxity_registry_create(registry, spec, &graph) == LAXITY_ERROR_CHANNEL);
    EXPECT(strcmp(laxity_last_error()->from, "a") == 0 && strcmp(laxity_last_error()->to, "b") == 0);
    EXPECT(strstr(laxity_last_error()->message, "Linux grants"));
    OK(laxity_spec_release(&spec));
}

int main(int argc, char **argv)
{
    const uint32_t channels[] = { LAXITY_CHANNEL_MEMORY, LAXITY_CHANNEL_FIFO, LAXITY_CHANNEL_QUEUE, LAXITY_CHANNEL_TCP };
    struct laxity_registry *registry;

    OK(laxity_registry_new(argc > 1 ? argv[1] : NULL, &registry));
    for (size_t i = 0; i < sizeof(channels) / sizeof(*channels); i++)
        messages_are_polled_for(registry, channels[i]);
    what_cannot_be_is_named(registry);
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
