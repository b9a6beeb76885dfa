// Camera -> filter -> display: three processes and two rings. Each image is written, filtered and shown in place. Start
// them in any order.
//
//     cc pipeline.c $(pkg-config --cflags --libs laxity) -o pipeline
//     ./pipeline camera & ./pipeline filter & ./pipeline display
//
// Prints "10 images, 45 is the sum of their first pixels, doubled: 90".

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 480, IMAGES = 10 };
enum { RAW, FILTERED }; // the edges, in the order in which they are added

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

// All three processes describe the graph; the first one creates it.
static struct laxity_graph *open_graph(void)
{
    const struct laxity_edge images = { .message_bytes = WIDTH * HEIGHT, .slots = 4 };
    struct laxity_registry *registry;
    struct laxity_spec *spec;
    struct laxity_graph *graph;

    check(laxity_registry_new(getenv("LAXITY_DIRECTORY"), &registry));
    check(laxity_spec_new("pipeline-example", &spec));
    check(laxity_spec_node(spec, "camera", 33 * 1000 * 1000));
    check(laxity_spec_node(spec, "filter", 0));
    check(laxity_spec_node(spec, "display", 0));
    check(laxity_spec_edge(spec, "camera", "filter", &images));
    check(laxity_spec_edge(spec, "filter", "display", &images));
    check(laxity_registry_create_or_attach(registry, spec, &graph));
    check(laxity_spec_release(&spec));
    check(laxity_registry_release(&registry));
    return graph;
}

static void camera(struct laxity_graph *graph)
{
    struct laxity_node *node;

    check(laxity_graph_claim(graph, "camera", &node));
    for (int image = 0; image < IMAGES; image++) {
        struct laxity_job *job = next(node); // waits for room
        void *pixels;
        size_t length;

        check(laxity_job_output(job, RAW, 0, &pixels, &length));
        memset(pixels, image, length);
        check(laxity_job_complete(job));
    }
    check(laxity_node_terminate(&node));
}

static void filter(struct laxity_graph *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;

    check(laxity_graph_claim(graph, "filter", &node));
    while ((job = next(node))) {
        const void *raw;
        void *filtered;
        size_t length;

        check(laxity_job_input(job, RAW, 0, &raw, &length));
        check(laxity_job_output(job, FILTERED, 0, &filtered, NULL));
        for (size_t i = 0; i < length; i++)
            ((unsigned char *)filtered)[i] = 2 * ((const unsigned char *)raw)[i];
        check(laxity_job_complete(job));
    }
    check(laxity_node_release(&node));
}

static void display(struct laxity_graph *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;
    int images = 0, sum = 0;

    check(laxity_graph_claim(graph, "display", &node));
    while ((job = next(node))) {
        const void *pixels;

        check(laxity_job_input(job, FILTERED, 0, &pixels, NULL));
        sum += *(const unsigned char *)pixels;
        images++;
        check(laxity_job_complete(job));
    }
    check(laxity_node_release(&node));
    printf("%d images, %d is the sum of their first pixels, doubled: %d\n", images, sum / 2, sum);
}

int main(int argc, char **argv)
{
    const char *role = argc == 2 ? argv[1] : "";
    struct laxity_graph *graph = open_graph();

    if (strcmp(role, "camera") == 0)
        camera(graph);
    else if (strcmp(role, "filter") == 0)
        filter(graph);
    else if (strcmp(role, "display") == 0)
        display(graph);
    else
        fprintf(stderr, "usage: %s camera|filter|display\n", argv[0]);
    check(laxity_graph_release(&graph));
    return 0;
}
