// Messages that are passed on without a copy. Prints "ok".

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { RAW, FILTERED, LENGTH = 4096 };

static const size_t EDGES[] = { RAW, FILTERED };

static struct laxity_graph *create(struct laxity_registry *registry)
{
    const struct laxity_edge images = { .message_bytes = LENGTH, .slots = 2 };
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    OK(laxity_spec_new("swap", &spec));
    OK(laxity_spec_node(spec, "camera", 1000 * 1000));
    OK(laxity_spec_node(spec, "filter", 0));
    OK(laxity_spec_node(spec, "display", 0));
    OK(laxity_spec_edge(spec, "camera", "filter", &images));
    OK(laxity_spec_edge(spec, "filter", "display", &images));
    EXPECT(laxity_spec_swapping(spec, NULL, 2) == LAXITY_ERROR_NULL);
    OK(laxity_spec_swapping(spec, EDGES, 2));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_spec_swapping(spec, EDGES, 1));
    EXPECT(laxity_registry_create(registry, spec, &(struct laxity_graph *){ NULL }) == LAXITY_ERROR_SPEC);
    EXPECT(strcmp(laxity_last_error()->from, "camera") == 0);
    OK(laxity_spec_release(&spec));
    return graph;
}

static struct laxity_job *next(struct laxity_node *node)
{
    struct laxity_job *job;

    OK(laxity_node_wait(node, 0, &job));
    return job;
}

static void an_image_stays_where_it_is(struct laxity_node *camera, struct laxity_node *filter,
                                       struct laxity_node *display, char value)
{
    struct laxity_job *job = next(camera);
    void *written, *changed;
    const void *raw, *shown;
    size_t length;

    OK(laxity_job_output(job, RAW, 0, &written, &length));
    memset(written, value, length);
    OK(laxity_job_complete(job));

    job = next(filter);
    OK(laxity_job_input(job, RAW, 0, &raw, NULL));
    EXPECT(laxity_job_swap(job, RAW, 0, FILTERED, 1) == LAXITY_ERROR_NO_MESSAGE);
    EXPECT(laxity_job_swap(job, FILTERED, 0, RAW, 0) == LAXITY_ERROR_SWAP);
    OK(laxity_job_swap(job, RAW, 0, FILTERED, 0));
    OK(laxity_job_output(job, FILTERED, 0, &changed, NULL));
    EXPECT(changed == raw);
    ((char *)changed)[0] = 0;
    OK(laxity_job_truncate(job, FILTERED, 0, 100));
    OK(laxity_job_complete(job));

    job = next(display);
    OK(laxity_job_input(job, FILTERED, 0, &shown, &length));
    EXPECT(shown == written && length == 100);
    EXPECT(((const char *)shown)[0] == 0 && ((const char *)shown)[99] == value);
    OK(laxity_job_complete(job));
}

int main(int argc, char **argv)
{
    struct laxity_registry *registry;
    struct laxity_graph *graph;
    struct laxity_node *camera, *filter, *display;

    EXPECT(argc == 2);
    OK(laxity_registry_new(argv[1], &registry));
    graph = create(registry);
    OK(laxity_graph_claim(graph, "camera", &camera));
    OK(laxity_graph_claim(graph, "filter", &filter));
    OK(laxity_graph_claim(graph, "display", &display));
    for (char value = 1; value < 9; value++)
        an_image_stays_where_it_is(camera, filter, display, value);
    OK(laxity_node_release(&camera));
    OK(laxity_node_release(&filter));
    OK(laxity_node_release(&display));
    OK(laxity_graph_release(&graph));
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
