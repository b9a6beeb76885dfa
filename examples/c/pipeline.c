// Camera -> filter -> display: three threads and two rings. Each image is written, filtered and shown in place.
//
//     cc pipeline.c $(pkg-config --cflags --libs laxity) -pthread -o pipeline && ./pipeline
//
// Prints "10 images, 45 is the sum of their first pixels, doubled: 90".

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 640, HEIGHT = 480, IMAGES = 10 };
enum { RAW, FILTERED }; // the edges, in the order in which they are added

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

// The next job, or NULL if there will be none.
static struct laxity_job *next(struct laxity_node *node)
{
    struct laxity_job *job;
    enum laxity_result result = laxity_node_wait(node, LAXITY_FOREVER, &job);

    if (result == LAXITY_TERMINATED)
        return NULL;
    check(result);
    return job;
}

static void *camera(void *graph)
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
    return NULL;
}

static void *filter(void *graph)
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
    return NULL;
}

static void *display(void *graph)
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
    return NULL;
}

int main(void)
{
    const struct laxity_edge images = { .message_bytes = WIDTH * HEIGHT, .slots = 4 };
    void *(*const nodes[])(void *) = { camera, filter, display };
    pthread_t threads[3];
    struct laxity_registry *registry;
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    char name[64];

    snprintf(name, sizeof(name), "pipeline-%d", (int)getpid());
    check(laxity_registry_new(getenv("LAXITY_DIRECTORY"), &registry));
    check(laxity_spec_new(name, &spec));
    check(laxity_spec_node(spec, "camera", 33 * 1000 * 1000));
    check(laxity_spec_node(spec, "filter", 0));
    check(laxity_spec_node(spec, "display", 0));
    check(laxity_spec_edge(spec, "camera", "filter", &images));
    check(laxity_spec_edge(spec, "filter", "display", &images));
    check(laxity_registry_create(registry, spec, &graph));
    check(laxity_spec_release(&spec));

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, nodes[i], graph);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    check(laxity_graph_release(&graph));
    check(laxity_registry_release(&registry));
    return 0;
}
