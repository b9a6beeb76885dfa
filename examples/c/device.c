// Jobs that use a soft GPU: an arbitration orders copies and launches, and takes tokens and engine locks by itself. Start any number.
//
//                                 cc device.c $(pkg-config --cflags --libs laxity) -o device
//                                 ./device camera & ./device lidar &
//                                 laxity gpu top
//
// The soft GPU's server, laxity-softgpu-server, lies beside the program or in PATH, or LAXITY_SOFTGPU_SERVER names it.
// Prints "camera: 10 jobs, 45000 pixels are 255".

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 10, PIXELS = 4500 };

static void check(enum laxity_result result)
{
    if (result != LAXITY_OK) {
        fprintf(stderr, "%s\n", laxity_last_error()->message);
        exit(1);
    }
}

// Runs while it holds the execution engine.
static int32_t invert(void *image, const struct laxity_view *view)
{
    unsigned char *pixels;

    if (laxity_view_write(view, image, 0, PIXELS, (void **)&pixels) != LAXITY_OK)
        return 1;
    for (size_t pixel = 0; pixel < PIXELS; pixel++)
        pixels[pixel] = 255 - pixels[pixel];
    return 0;
}

int main(int argc, char **argv)
{
    const struct laxity_gpu_config sharing = { .cpus = 2, .gpus = 1, .chunk_bytes = 1000 };
    const struct laxity_device_config config = { .name = "device-example" };
    const char *name = argc > 1 ? argv[1] : "anonymous";
    struct laxity_gpus *gpus;
    struct laxity_device *device;
    struct laxity_device_thread *thread;
    struct laxity_buffer *image;
    unsigned char pixels[PIXELS];
    int count = 0;

    // All processes state the same; the first one creates the arbitration and starts the soft GPU.
    check(laxity_gpus_create_or_attach(getenv("LAXITY_DIRECTORY"), "device-example", &sharing, &gpus));
    check(laxity_device_open(&config, gpus, &device));
    check(laxity_device_register(device, name, 50, 0, &thread)); // this thread, as urgent as SCHED_FIFO 50
    check(laxity_buffer_alloc(device, 0, PIXELS, &image));
    for (int job = 0; job < JOBS; job++) {
        memset(pixels, 0, PIXELS);
        check(laxity_device_begin_job(thread, job, 50, 0));
        check(laxity_device_copy_in(thread, image, 0, pixels, PIXELS)); // takes the token
        check(laxity_device_launch(thread, invert, image, 0));
        check(laxity_device_copy_out(thread, image, 0, pixels, PIXELS));
        check(laxity_device_end_job(thread)); // releases it
        for (size_t pixel = 0; pixel < PIXELS; pixel++)
            count += pixels[pixel] == 255;
    }
    printf("%s: %d jobs, %d pixels are 255\n", name, JOBS, count);
    check(laxity_buffer_release(&image));
    check(laxity_device_thread_release(&thread));
    check(laxity_device_release(&device));
    check(laxity_gpus_release(&gpus));
    return 0;
}
