// User data of nodes and edges, in two processes. Prints "ok".

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

struct exposure {
    uint32_t microseconds, gain;
};

static struct laxity_graph *create(struct laxity_registry *registry)
{
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    OK(laxity_spec_new("data", &spec));
    OK(laxity_spec_node(spec, "camera", 1000 * 1000));
    OK(laxity_spec_node(spec, "detector", 0));
    OK(laxity_spec_edge(spec, "camera", "detector", NULL));
    OK(laxity_spec_node_data(spec, "camera", sizeof(struct exposure)));
    OK(laxity_spec_edge_data(spec, 0, 3));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_spec_node_data(spec, "missing", 1));
    EXPECT(laxity_registry_create(registry, spec, &(struct laxity_graph *){ NULL }) == LAXITY_ERROR_SPEC);
    EXPECT(strcmp(laxity_last_error()->node, "missing") == 0);
    OK(laxity_spec_release(&spec));
    return graph;
}

// In another process.
static void set_exposure(struct laxity_graph *parents, const char *directory)
{
    const struct exposure longer = { .microseconds = 500, .gain = 2 };
    struct laxity_registry *registry;
    struct laxity_graph *graph;

    EXPECT(laxity_data_write(parents, "camera", 0, &longer, sizeof(longer), NULL) == LAXITY_ERROR_FORKED);
    OK(laxity_registry_new(directory, &registry));
    OK(laxity_registry_attach(registry, "data", 0, &graph));
    OK(laxity_data_write(graph, "camera", 0, &longer, sizeof(longer), NULL));
    OK(laxity_graph_release(&graph));
    OK(laxity_registry_release(&registry));
}

int main(int argc, char **argv)
{
    struct laxity_registry *registry;
    struct laxity_graph *graph;
    struct laxity_status now;
    struct laxity_node *camera;
    struct exposure exposure = { .microseconds = 9 };
    uint64_t version;
    size_t length;
    char text[3];
    int status;
    pid_t child;

    EXPECT(argc == 2);
    OK(laxity_registry_new(argv[1], &registry));
    graph = create(registry);
    OK(laxity_data_length(graph, "camera", 0, &length));
    EXPECT(length == sizeof(exposure));
    OK(laxity_data_length(graph, "detector", 0, &length));
    EXPECT(length == 0);
    OK(laxity_data_read(graph, "camera", 0, &exposure, sizeof(exposure), &version));
    EXPECT(exposure.microseconds == 0 && exposure.gain == 0 && version == 0);

    child = fork();
    if (child == 0) {
        set_exposure(graph, argv[1]);
        /* Not exit: what threads hold that a fork does not have looks leaked to a sanitizer. */
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    OK(laxity_data_read(graph, "camera", 0, &exposure, sizeof(exposure), &version));
    EXPECT(exposure.microseconds == 500 && exposure.gain == 2 && version == 1);
    exposure.gain = 3;
    version = 0;
    EXPECT(laxity_data_write(graph, "camera", 0, &exposure, sizeof(exposure), &version) == LAXITY_CHANGED);
    version = 1;
    OK(laxity_data_write(graph, "camera", 0, &exposure, sizeof(exposure), &version));
    OK(laxity_data_read(graph, "camera", 0, &exposure, sizeof(exposure), &version));
    EXPECT(exposure.gain == 3 && version == 2);

    OK(laxity_data_write(graph, NULL, 0, "abc", 3, NULL));
    OK(laxity_data_read(graph, NULL, 0, text, 3, NULL));
    EXPECT(memcmp(text, "abc", 3) == 0);
    EXPECT(laxity_data_write(graph, NULL, 0, "abcd", 4, NULL) == LAXITY_ERROR_VALUE);
    EXPECT(strstr(laxity_last_error()->message, "edge camera -> detector: 4 bytes for its 3 bytes"));
    EXPECT(laxity_data_read(graph, NULL, 1, text, 3, NULL) == LAXITY_ERROR_NO_EDGE);
    EXPECT(laxity_data_read(graph, "missing", 0, text, 3, NULL) == LAXITY_ERROR_NO_NODE);
    EXPECT(laxity_data_read(graph, NULL, 0, NULL, 3, NULL) == LAXITY_ERROR_NULL);

    OK(laxity_graph_claim(graph, "camera", &camera));
    OK(laxity_graph_status(graph, "camera", &now));
    EXPECT(now.ownership == LAXITY_CLAIMED && !now.is_waiting && !now.is_sending);
    OK(laxity_node_release(&camera));
    OK(laxity_graph_release(&graph));
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
