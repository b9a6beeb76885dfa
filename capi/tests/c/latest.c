// A latest-value edge from C: the newest complete value, in place, and none before the first. Prints "ok".

#include <laxity.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

int main(int argc, char **argv)
{
    struct laxity_registry *registry;
    struct laxity_spec *spec;
    struct laxity_graph *graph;
    struct laxity_node *camera, *fusion;
    struct laxity_job *writing, *reading;
    const void *value;
    void *output;
    size_t length;
    uint64_t writer;

    EXPECT(argc == 2);
    OK(laxity_registry_new(argv[1], &registry));
    OK(laxity_spec_new("fusion", &spec));
    OK(laxity_spec_node(spec, "camera", 33000000));
    OK(laxity_spec_node(spec, "fusion", 50000000));
    EXPECT(laxity_spec_latest(spec, "camera", "radar", 16) == LAXITY_ERROR_NO_NODE);
    OK(laxity_spec_latest(spec, "camera", "fusion", 16));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_graph_claim(graph, "camera", &camera));
    OK(laxity_graph_claim(graph, "fusion", &fusion));

    OK(laxity_node_wait(fusion, 0, &reading));
    OK(laxity_job_latest(reading, 0, &value, &length, &writer));
    EXPECT(value == NULL && length == 0);
    OK(laxity_job_complete(reading));
    for (int job = 0; job < 5; job++) {
        OK(laxity_node_wait(camera, 0, &writing));
        OK(laxity_job_latest_output(writing, 0, &output, &length));
        EXPECT(length == 16);
        memset(output, 'a' + job, 7);
        OK(laxity_job_latest_truncate(writing, 0, 7));
        EXPECT(laxity_job_latest_truncate(writing, 0, 17) == LAXITY_ERROR_TOO_LONG);
        EXPECT(laxity_job_latest(writing, 0, &value, NULL, NULL) == LAXITY_ERROR_NO_RING);
        OK(laxity_job_complete(writing));
    }
    OK(laxity_node_wait(fusion, 0, &reading));
    OK(laxity_job_latest(reading, 0, &value, &length, &writer));
    EXPECT(length == 7 && memcmp(value, "eeeeeee", 7) == 0 && writer == 4);
    OK(laxity_job_complete(reading));
    OK(laxity_node_release(&camera));
    OK(laxity_node_release(&fusion));
    OK(laxity_graph_release(&graph));
    OK(laxity_spec_release(&spec));
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
