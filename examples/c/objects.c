// Shared data objects: the edges of the graph follow from the nodes' use of them.
//
//     camera --image--> motion --image--> display      cc objects.c $(pkg-config --cflags --libs laxity) -pthread -o objects
//                       |    ^                         ./objects
//                       '----'
//                before, 1 job ago                     Prints how much each image differs from the one before.
//
// The motion node replaces the image, in place, by its difference to the last one, of which it keeps a copy in a delay.
// There are as many replicas of the image as nodes, so that three runs of the graph may overlap.

#include <laxity.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES = 10, PIXELS = 640 * 480 };

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

static uint8_t *write_object(struct laxity_job *job, const char *object)
{
    void *bytes;

    check(laxity_job_write(job, object, &bytes, NULL));
    return bytes;
}

static const uint8_t *read_object(struct laxity_job *job, const char *object, uint32_t ago)
{
    const void *bytes;

    check(laxity_job_read(job, object, ago, &bytes, NULL));
    return bytes;
}

static void *motion(void *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;
    enum laxity_result result;

    check(laxity_graph_claim(graph, "motion", &node));
    while ((result = laxity_node_wait(node, LAXITY_FOREVER, &job)) == LAXITY_OK) {
        const uint8_t *before = read_object(job, "before", 1);
        uint8_t *image = write_object(job, "image");

        memcpy(write_object(job, "before"), image, PIXELS);
        for (int pixel = 0; pixel < PIXELS; pixel++)
            image[pixel] -= before[pixel];
        check(laxity_job_complete(job));
    }
    if (result != LAXITY_TERMINATED)
        check(result);
    check(laxity_node_release(&node));
    return NULL;
}

static void *display(void *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;
    enum laxity_result result;

    check(laxity_graph_claim(graph, "display", &node));
    while ((result = laxity_node_wait(node, LAXITY_FOREVER, &job)) == LAXITY_OK) {
        printf("%d ", read_object(job, "image", 0)[PIXELS / 2]);
        check(laxity_job_complete(job));
    }
    if (result != LAXITY_TERMINATED)
        check(result);
    check(laxity_node_release(&node));
    printf("\n");
    return NULL;
}

static void camera(struct laxity_graph *graph)
{
    struct laxity_node *node;
    struct laxity_job *job;

    check(laxity_graph_claim(graph, "camera", &node));
    for (int image = 0; image < IMAGES; image++) {
        check(laxity_node_wait(node, LAXITY_FOREVER, &job));
        memset(write_object(job, "image"), image * image, PIXELS);
        check(laxity_job_complete(job));
    }
    check(laxity_node_terminate(&node));
}

static void describe(struct laxity_pipeline *pipeline)
{
    const struct laxity_parameter takes[] = { { .object = "image", .writes = true } };
    const struct laxity_parameter compares[] = {
        { .object = "image", .reads = true, .writes = true },
        { .object = "before", .reads = true, .ago = 1 },
        { .object = "before", .writes = true },
    };
    const struct laxity_parameter shows[] = { { .object = "image", .reads = true } };

    check(laxity_pipeline_object(pipeline, "image", PIXELS));
    check(laxity_pipeline_delay(pipeline, "before", PIXELS, 1, NULL));
    check(laxity_pipeline_node(pipeline, "camera", takes, 1));
    check(laxity_pipeline_node(pipeline, "motion", compares, 3));
    check(laxity_pipeline_node(pipeline, "display", shows, 1));
}

int main(void)
{
    struct laxity_registry *registry;
    struct laxity_pipeline *pipeline;
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    pthread_t threads[2];
    uint32_t depth;
    char name[64];

    snprintf(name, sizeof(name), "objects-%d", (int)getpid());
    check(laxity_registry_new(getenv("LAXITY_DIRECTORY"), &registry));
    check(laxity_pipeline_new(name, 33 * 1000 * 1000, &pipeline));
    describe(pipeline);
    check(laxity_pipeline_depth(pipeline, &depth));
    check(laxity_pipeline_build(pipeline, depth, &spec));
    check(laxity_registry_create(registry, spec, &graph));
    check(laxity_spec_release(&spec));
    check(laxity_pipeline_release(&pipeline));

    if (pthread_create(&threads[0], NULL, motion, graph) != 0 || pthread_create(&threads[1], NULL, display, graph) != 0)
        return 1;
    camera(graph);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    check(laxity_graph_release(&graph));
    check(laxity_registry_release(&registry));
    return 0;
}
