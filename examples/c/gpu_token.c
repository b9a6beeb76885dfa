// Processes that share a GPU: each takes a token for every job, and an engine for every operation. Start any number.
//
//                                 cc gpu_token.c $(pkg-config --cflags --libs laxity) -o gpu_token
//                                 ./gpu_token camera & ./gpu_token lidar &
//                                 laxity gpu top
//
// The first prints "camera: 100 jobs, 1000 chunks". Where a real program issues an operation and waits until it is
// complete, this one only counts.

#include <inttypes.h>
#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 100, IMAGE_BYTES = 10 * 1000 * 1000, CHUNK_BYTES = 1000 * 1000 };

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

// In chunks: a more urgent copy waits for one of them at most.
static uint64_t copy_image(struct laxity_gpu_client *client)
{
    uint64_t chunks = 0, length;

    for (uint64_t done = 0; done < IMAGE_BYTES; done += length) {
        check(laxity_gpu_chunk(client, LAXITY_ENGINE_COPY_IN, IMAGE_BYTES - done, LAXITY_FOREVER, &length));
        chunks++; // copy `length` bytes, and wait until that is complete
        check(laxity_gpu_engines_release(client));
    }
    return chunks;
}

int main(int argc, char **argv)
{
    const struct laxity_gpu_config config = { .cpus = 2, .gpus = 1, .chunk_bytes = CHUNK_BYTES };
    const char *name = argc > 1 ? argv[1] : "anonymous";
    struct laxity_gpus *gpus;
    struct laxity_gpu_client *client;
    uint64_t chunks = 0;

    // All processes state the same; the first one creates the arbitration.
    check(laxity_gpus_create_or_attach(getenv("LAXITY_DIRECTORY"), "gpu-token-example", &config, &gpus));
    check(laxity_gpus_register(gpus, name, 50, 0, &client)); // this thread, as urgent as SCHED_FIFO 50
    for (int job = 0; job < JOBS; job++) {
        check(laxity_gpu_token(client, -1, LAXITY_FOREVER, NULL)); // any GPU
        chunks += copy_image(client);
        check(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, LAXITY_FOREVER));
        // launch the GPU kernel, and wait until it is complete
        check(laxity_gpu_engines_release(client));
        check(laxity_gpu_token_release(client)); // the job is over
    }
    printf("%s: %d jobs, %" PRIu64 " chunks\n", name, JOBS, chunks);
    check(laxity_gpu_client_release(&client));
    check(laxity_gpus_release(&gpus));
    return 0;
}
