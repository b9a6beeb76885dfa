// Devices: each mistake gets a number and a text. Prints "ok".

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

static char own[64];

static struct laxity_device *open_device(const struct laxity_gpus *gpus, const char *name)
{
    const struct laxity_device_config config = { .name = name, .memory = 4096 };
    struct laxity_device *device;

    OK(laxity_device_open(&config, gpus, &device));
    return device;
}

static void what_cannot_be_opened_is_refused(const struct laxity_gpus *gpus)
{
    const struct laxity_device_config two = { .name = own, .gpus = 2 }, nameless = { .gpus = 1 },
                                      empty = { .name = "" }, odd = { .name = own, .handling = 7 },
                                      fixed = { .name = own, .engines = LAXITY_SERVICE_FIXED },
                                      lost = { .name = "lost", .server = "/nonexistent" },
                                      crowd = { .name = own, .gpus = 65 };
    struct laxity_device *device = (void *)8;

    EXPECT(laxity_device_open(NULL, gpus, &device) == LAXITY_ERROR_NULL && device == NULL);
    EXPECT(laxity_device_open(&two, gpus, &device) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "2 GPUs and its arbitration 1"));
    EXPECT(laxity_device_open(&crowd, NULL, &device) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "64 at most"));
    EXPECT(laxity_device_open(&nameless, NULL, &device) == LAXITY_ERROR_NULL);
    EXPECT(laxity_device_open(&empty, NULL, &device) == LAXITY_ERROR_NAME);
    EXPECT(laxity_device_open(&odd, NULL, &device) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_device_open(&fixed, NULL, &device) == LAXITY_ERROR_SCHEDULE); // at priority 0
    EXPECT(laxity_device_open(&lost, NULL, &device) == LAXITY_ERROR_NO_SOFT_GPU);
    EXPECT(laxity_device_open(&two, (const struct laxity_gpus *)&two, &device) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_device_open(&two, NULL, NULL) == LAXITY_ERROR_NULL);
}

struct seen {
    struct laxity_buffer *buffer;
    struct laxity_device_thread *thread;
    const struct laxity_view *view;
    enum laxity_result race, range, issue;
};

static int32_t look(void *argument, const struct laxity_view *view)
{
    struct seen *seen = argument;
    const char *read;
    char *written;

    seen->view = view;
    OK(laxity_view_read(view, seen->buffer, 0, 8, (const void **)&read));
    OK(laxity_view_write(view, seen->buffer, 8, 8, (void **)&written));
    memcpy(written, read, 8);
    seen->race = laxity_view_write(view, seen->buffer, 4, 8, (void **)&written);
    seen->range = laxity_view_read(view, seen->buffer, 90, 11, (const void **)&read);
    seen->issue = laxity_device_launch_timed(seen->thread, 1);
    return 0;
}

static int32_t fail(void *argument, const struct laxity_view *view)
{
    (void)argument;
    (void)view;
    return 42;
}

static void kernels_are_told_what_they_cannot_have(struct laxity_device *device, struct laxity_device_thread *thread)
{
    struct seen seen = { .thread = thread };
    struct laxity_buffer *none = NULL;
    char bytes[16] = "in and out";
    void *nowhere;

    OK(laxity_buffer_alloc(device, 0, 100, &seen.buffer));
    OK(laxity_device_copy_in(thread, seen.buffer, 0, bytes, 8));
    OK(laxity_device_launch(thread, look, &seen, 0));
    EXPECT(seen.race == LAXITY_ERROR_RACE && seen.range == LAXITY_ERROR_RANGE);
    EXPECT(seen.issue == LAXITY_ERROR_THREAD);
    OK(laxity_device_copy_out(thread, seen.buffer, 0, bytes, 16));
    EXPECT(memcmp(bytes, "in and oin and o", 16) == 0);
    EXPECT(laxity_device_launch(thread, fail, NULL, 0) == LAXITY_ERROR_KERNEL);
    EXPECT(strstr(laxity_last_error()->message, "returned 42"));
    EXPECT(laxity_device_launch(thread, NULL, NULL, 0) == LAXITY_ERROR_NULL);
    EXPECT(laxity_view_write(NULL, seen.buffer, 0, 1, &nowhere) == LAXITY_ERROR_NULL && nowhere == NULL);
    EXPECT(laxity_view_write((const void *)bytes, seen.buffer, 0, 1, &nowhere) == LAXITY_ERROR_HANDLE);
    EXPECT(laxity_device_copy_in(thread, seen.buffer, 90, bytes, 11) == LAXITY_ERROR_RANGE);
    EXPECT(laxity_device_copy_in(thread, seen.buffer, 0, NULL, 1) == LAXITY_ERROR_NULL);
    OK(laxity_device_copy_in(thread, seen.buffer, 100, NULL, 0));
    EXPECT(laxity_device_copy_out(thread, seen.buffer, (size_t)-1, bytes, 2) == LAXITY_ERROR_RANGE);
    EXPECT(laxity_device_copy_out(thread, NULL, 0, bytes, 2) == LAXITY_ERROR_NULL);
    EXPECT(laxity_device_copy_timed(thread, LAXITY_ENGINE_EXECUTION, 1) == LAXITY_ERROR_NO_ENGINE);
    OK(laxity_device_copy_timed(thread, LAXITY_ENGINE_COPY_OUT, 1));
    EXPECT(laxity_buffer_alloc(device, 0, 8192, &none) == LAXITY_ERROR_MEMORY && none == NULL);
    EXPECT(laxity_buffer_alloc(device, 1, 1, &none) == LAXITY_ERROR_NO_GPU);
    OK(laxity_buffer_release(&seen.buffer));
    OK(laxity_buffer_release(&seen.buffer));
}

static void a_buffer_of_another_device_is_refused(struct laxity_device_thread *thread)
{
    struct laxity_device *other = open_device(NULL, strcat(own, "-other"));
    struct laxity_buffer *buffer;
    char bytes[1] = "";

    OK(laxity_buffer_alloc(other, 0, 1, &buffer));
    EXPECT(laxity_device_copy_in(thread, buffer, 0, bytes, 1) == LAXITY_ERROR_BUFFER);
    OK(laxity_buffer_release(&buffer));
    OK(laxity_device_release(&other));
}

static void *of_another_thread(void *thread)
{
    struct laxity_device_thread *copy = thread;

    EXPECT(laxity_device_launch_timed(thread, 1) == LAXITY_ERROR_THREAD);
    EXPECT(laxity_device_thread_release(&copy) == LAXITY_ERROR_THREAD && copy == thread);
    return NULL;
}

static void sizes_beyond_all_memory_are_refused(const struct laxity_device *device, struct laxity_device_thread *thread)
{
    struct laxity_buffer *buffer;
    char byte = 0;

    OK(laxity_buffer_alloc(device, 0, 8, &buffer));
    EXPECT(laxity_device_copy_in(thread, buffer, 0, &byte, SIZE_MAX) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_device_copy_out(thread, buffer, 0, &byte, SIZE_MAX) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_device_copy_in(thread, buffer, 8, &byte, 1) == LAXITY_ERROR_RANGE);
    OK(laxity_buffer_release(&buffer));
}

static void *registered(void *argument)
{
    struct {
        const struct laxity_device *device;
        struct laxity_device_thread *thread;
    } *both = argument;

    OK(laxity_device_register(both->device, "leaver", 0, 0, &both->thread));
    return NULL;
}

// A thread that ends without a word leaves a handle, which any thread releases. Its memory keeps the device.
static void what_an_ended_thread_left_is_released(void)
{
    char name[80];
    struct laxity_device *device;
    struct {
        const struct laxity_device *device;
        struct laxity_device_thread *thread;
    } both = { NULL, NULL };
    pthread_t other;

    snprintf(name, sizeof(name), "%s-left", own);
    both.device = device = open_device(NULL, name);

    EXPECT(pthread_create(&other, NULL, registered, &both) == 0 && pthread_join(other, NULL) == 0);
    EXPECT(laxity_device_launch_timed(both.thread, 1) == LAXITY_ERROR_THREAD);
    OK(laxity_device_thread_release(&both.thread));
    EXPECT(both.thread == NULL);
    OK(laxity_device_release(&device));
}

static void jobs_hold_tokens_until_they_end(struct laxity_device *device, struct laxity_device_thread *thread)
{
    struct laxity_device_thread *none;
    uint32_t gpu = 7;
    bool holds = true;

    OK(laxity_device_begin_job(thread, 1, 20, 0));
    OK(laxity_device_holds_token(thread, &holds));
    EXPECT(!holds);
    OK(laxity_device_acquire_token(thread, &gpu));
    EXPECT(gpu == 0);
    OK(laxity_device_release_token(thread));
    OK(laxity_device_launch_timed(thread, 1));
    OK(laxity_device_holds_token(thread, &holds));
    EXPECT(holds);
    OK(laxity_device_end_job(thread));
    OK(laxity_device_holds_token(thread, &holds));
    EXPECT(!holds);
    EXPECT(laxity_device_begin_job(thread, 2, 100, 0) == LAXITY_ERROR_CLIENT);
    EXPECT(laxity_device_use_gpu(thread, 1) == LAXITY_ERROR_NO_GPU);
    OK(laxity_device_use_gpu(thread, -1));
    EXPECT(laxity_device_register(device, "", 0, 0, &none) == LAXITY_ERROR_CLIENT && none == NULL);
}

int main(int argc, char **argv)
{
    const struct laxity_gpu_config sharing = { .cpus = 2, .gpus = 1, .chunk_bytes = 5 };
    struct laxity_gpus *gpus;
    struct laxity_device *device;
    struct laxity_device_thread *thread;
    pthread_t other;

    EXPECT(argc == 2);
    snprintf(own, sizeof(own), "misuse-%ld", (long)getpid()); // another run of this test has another name
    OK(laxity_gpus_create_or_attach(argv[1], "g", &sharing, &gpus));
    what_cannot_be_opened_is_refused(gpus);
    device = open_device(gpus, own);
    OK(laxity_gpus_release(&gpus)); // the device keeps it
    OK(laxity_device_register(device, "worker", 10, 0, &thread));
    kernels_are_told_what_they_cannot_have(device, thread);
    a_buffer_of_another_device_is_refused(thread);
    sizes_beyond_all_memory_are_refused(device, thread);
    what_an_ended_thread_left_is_released();
    jobs_hold_tokens_until_they_end(device, thread);
    pthread_create(&other, NULL, of_another_thread, thread);
    pthread_join(other, NULL);
    OK(laxity_device_release(&device)); // the thread keeps it
    OK(laxity_device_launch_timed(thread, 1));
    OK(laxity_device_thread_release(&thread));
    puts("ok");
    return 0;
}
