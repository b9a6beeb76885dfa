// GPUs: each mistake gets a number and a text, and a killed process's token goes to the next. Prints "ok".

#include <laxity.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static const struct laxity_gpu_config two = { .cpus = 2, .gpus = 2, .chunk_bytes = 1000 };

static void what_cannot_be_shared_is_refused(const char *directory)
{
    const struct laxity_gpu_config none = { .cpus = 2 }, odd = { .cpus = 2, .gpus = 1, .arbitration = 7 };
    struct laxity_gpus *gpus = (void *)8;

    EXPECT(laxity_gpus_create_or_attach(directory, "g", NULL, &gpus) == LAXITY_ERROR_NULL);
    EXPECT(gpus == NULL);
    EXPECT(laxity_gpus_create_or_attach(directory, "g", &none, &gpus) == LAXITY_ERROR_CONFIG);
    EXPECT(strstr(laxity_last_error()->message, "GPUs: 0 is outside 1 to 64"));
    EXPECT(laxity_gpus_create_or_attach(directory, "g", &odd, &gpus) == LAXITY_ERROR_CONFIG);
    EXPECT(laxity_gpus_create_or_attach(directory, "a/b", &two, &gpus) == LAXITY_ERROR_NAME);
    EXPECT(laxity_gpus_attach(directory, "g", &gpus) == LAXITY_ERROR_NO_ARBITRATION);
    EXPECT(laxity_gpus_attach(directory, "g", NULL) == LAXITY_ERROR_NULL);
}

static void *of_another_thread(void *client)
{
    struct laxity_gpu_client *copy = client;

    EXPECT(laxity_gpu_token(client, -1, 0, NULL) == LAXITY_ERROR_THREAD);
    EXPECT(laxity_gpu_client_release(&copy) == LAXITY_ERROR_THREAD);
    EXPECT(copy == client);
    return NULL;
}

static void *waits_in_vain(void *gpus)
{
    struct laxity_gpu_client *client;

    OK(laxity_gpus_register(gpus, "other", 0, 0, &client));
    EXPECT(laxity_gpu_token(client, 1, 0, NULL) == LAXITY_TIMED_OUT);
    EXPECT(laxity_gpu_token(client, 1, 1000 * 1000, NULL) == LAXITY_TIMED_OUT);
    OK(laxity_gpu_client_release(&client));
    return NULL;
}

static void in_a_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, function, argument) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void tokens_and_engines_have_an_order(const char *directory)
{
    const struct laxity_gpu_config other = { .cpus = 2, .gpus = 1 };
    struct laxity_gpus *gpus, *again;
    struct laxity_gpu_client *client, *wrong;
    uint32_t gpu;
    uint64_t length;
    size_t text_length;
    char text[64];
    bool inherits;

    OK(laxity_gpus_create_or_attach(directory, "g", &two, &gpus));
    EXPECT(laxity_gpus_create_or_attach(directory, "g", &other, &again) == LAXITY_ERROR_DIFFERENT);
    EXPECT(laxity_gpus_register(gpus, "", 1, 0, &client) == LAXITY_ERROR_CLIENT);
    EXPECT(laxity_gpus_register(gpus, "c", 100, 0, &client) == LAXITY_ERROR_CLIENT);
    EXPECT(client == NULL);
    OK(laxity_gpus_inherits(gpus, &inherits));
    OK(laxity_gpus_register(gpus, "client", 50, 0, &client));
    wrong = (void *)gpus;
    EXPECT(laxity_gpu_token(wrong, -1, 0, &gpu) == LAXITY_ERROR_HANDLE);
    in_a_thread(of_another_thread, client);

    EXPECT(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, 0) == LAXITY_ERROR_NO_TOKEN);
    EXPECT(laxity_gpu_peer_copy(client, 0, 0) == LAXITY_ERROR_NO_TOKEN);
    EXPECT(laxity_gpu_token_release(client) == LAXITY_ERROR_NO_TOKEN);
    EXPECT(laxity_gpu_token(client, 2, 0, &gpu) == LAXITY_ERROR_NO_GPU);
    OK(laxity_gpu_client_rebase(client, 0, 1000));
    OK(laxity_gpu_token(client, 1, 0, &gpu));
    EXPECT(gpu == 1);
    EXPECT(laxity_gpu_client_rebase(client, 20, 0) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_gpu_token(client, -1, 0, &gpu) == LAXITY_ERROR_ORDER);
    EXPECT(laxity_gpu_peer_copy(client, 1, 0) == LAXITY_ERROR_NO_GPU);
    EXPECT(laxity_gpu_peer_copy(client, 7, 0) == LAXITY_ERROR_NO_GPU);
    EXPECT(laxity_gpu_engine(client, 3, 0) == LAXITY_ERROR_NO_ENGINE);
    EXPECT(laxity_gpu_chunk(client, LAXITY_ENGINE_EXECUTION, 1, 0, &length) == LAXITY_ERROR_NO_ENGINE);
    in_a_thread(waits_in_vain, gpus);

    OK(laxity_gpu_chunk(client, LAXITY_ENGINE_COPY_OUT, 1500, 0, &length));
    EXPECT(length == 1000);
    EXPECT(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, 0) == LAXITY_ERROR_ORDER);
    OK(laxity_gpu_engines_release(client));
    OK(laxity_gpu_peer_copy(client, 0, 0));
    OK(laxity_gpus_text(gpus, text, sizeof(text), &text_length));
    EXPECT(text_length >= sizeof(text) && strlen(text) == sizeof(text) - 1);
    EXPECT(strstr(text, "g: 2 GPUs, 1 clients, 0 waiting"));
    OK(laxity_gpus_text(gpus, NULL, 0, NULL));
    EXPECT(laxity_gpus_text(gpus, NULL, 1, NULL) == LAXITY_ERROR_NULL);
    OK(laxity_gpu_token_release(client)); // and with it the engines

    OK(laxity_gpu_token(client, 0, 0, &gpu));
    OK(laxity_gpu_engine(client, LAXITY_ENGINE_COPY_IN, 0));
    OK(laxity_gpus_release(&gpus));
    OK(laxity_gpu_client_release(&client)); // and all its locks
    OK(laxity_gpu_client_release(&client));
}

static void *register_and_end(void *argument)
{
    struct {
        struct laxity_gpus *gpus;
        struct laxity_gpu_client *client;
    } *both = argument;

    OK(laxity_gpus_register(both->gpus, "leaver", 0, 0, &both->client));
    OK(laxity_gpu_token(both->client, 0, LAXITY_FOREVER, NULL));
    return NULL;
}

// A thread that ends without a word: its locks go to the next, and any thread releases the handle.
static void what_an_ended_thread_left_is_released(const char *directory)
{
    struct {
        struct laxity_gpus *gpus;
        struct laxity_gpu_client *client;
    } both = { NULL, NULL };
    struct laxity_gpu_client *next;
    pthread_t other;

    OK(laxity_gpus_create_or_attach(directory, "left", &two, &both.gpus));
    OK(laxity_gpus_register(both.gpus, "next", 0, 0, &next));
    EXPECT(pthread_create(&other, NULL, register_and_end, &both) == 0 && pthread_join(other, NULL) == 0);
    EXPECT(laxity_gpu_token_release(both.client) == LAXITY_ERROR_THREAD);
    OK(laxity_gpu_client_release(&both.client));
    EXPECT(both.client == NULL);
    OK(laxity_gpu_token(next, 0, LAXITY_FOREVER, NULL));
    OK(laxity_gpu_client_release(&next));
    OK(laxity_gpus_release(&both.gpus));
}

// In a process of its own: the memory of the handle keeps that attached to the end.
static void what_an_ended_thread_left_ends_with_its_process(const char *directory)
{
    size_t removed;
    int status;
    const pid_t child = fork();

    EXPECT(child >= 0);
    if (child == 0) {
        what_an_ended_thread_left_is_released(directory);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(laxity_gpus_gc(directory, &removed));
    EXPECT(removed == 1);
}

// Holds the only token of a GPU until it is killed, and writes to `said` once it does.
static void hold(const char *directory, int said)
{
    struct laxity_gpus *gpus;
    struct laxity_gpu_client *client;

    OK(laxity_gpus_create_or_attach(directory, "killed", &two, &gpus));
    OK(laxity_gpus_register(gpus, "killed", 0, 0, &client));
    OK(laxity_gpu_token(client, 1, 0, NULL));
    OK(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, 0));
    EXPECT(write(said, "", 1) == 1);
    for (;;)
        pause();
}

static void what_a_killed_process_held_goes_to_the_next(const char *directory)
{
    struct laxity_gpus *gpus;
    struct laxity_gpu_client *client;
    int pipe_ends[2], status;
    char byte;
    size_t removed;
    pid_t child;

    EXPECT(pipe(pipe_ends) == 0);
    child = fork();
    EXPECT(child >= 0);
    if (child == 0)
        hold(directory, pipe_ends[1]);
    EXPECT(read(pipe_ends[0], &byte, 1) == 1);
    OK(laxity_gpus_attach(directory, "killed", &gpus));
    OK(laxity_gpus_register(gpus, "next", 0, 0, &client));
    EXPECT(laxity_gpu_token(client, 1, 0, NULL) == LAXITY_TIMED_OUT);
    EXPECT(kill(child, SIGKILL) == 0);
    OK(laxity_gpu_token(client, 1, LAXITY_FOREVER, NULL));
    OK(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, LAXITY_FOREVER));
    EXPECT(waitpid(child, &status, 0) == child);
    OK(laxity_gpus_gc(directory, &removed));
    EXPECT(removed == 0);
    OK(laxity_gpu_client_release(&client));
    OK(laxity_gpus_release(&gpus));
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    // First, before the library starts threads, which a forked child would not have.
    what_an_ended_thread_left_ends_with_its_process(argv[1]);
    what_a_killed_process_held_goes_to_the_next(argv[1]);
    what_cannot_be_shared_is_refused(argv[1]);
    tokens_and_engines_have_an_order(argv[1]);
    puts("ok");
    return 0;
}
