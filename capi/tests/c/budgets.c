// Budgets of jobs that use GPUs: a waiter is withdrawn and asks again, a holder releases its token. Prints "ok".

#include <laxity.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

static const struct laxity_gpu_config one = { .cpus = 2, .gpus = 1 };

// A thread that asks for the only token, which its main thread holds.
struct waiter {
    const struct laxity_gpus *gpus;
    struct laxity_budget *budget;
    pthread_barrier_t is_known;
};

static void *wait_for_token(void *argument)
{
    struct waiter *waiter = argument;
    struct laxity_gpu_client *client;
    bool is_exhausted = true;

    OK(laxity_gpus_register(waiter->gpus, "waiter", 0, 0, &client));
    OK(laxity_gpu_client_budget(client, &waiter->budget));
    OK(laxity_gpu_client_is_exhausted(client, &is_exhausted));
    EXPECT(!is_exhausted);
    pthread_barrier_wait(&waiter->is_known);
    OK(laxity_gpu_token(client, -1, LAXITY_FOREVER, NULL));
    OK(laxity_budget_exhaust(waiter->budget)); // its own budget, while it holds the token
    OK(laxity_gpu_client_is_exhausted(client, &is_exhausted));
    EXPECT(is_exhausted);
    OK(laxity_gpu_client_release(&client));
    return NULL;
}

static void until_waiting(const struct laxity_gpus *gpus, const char *how_many)
{
    char text[1024];

    do
        OK(laxity_gpus_text(gpus, text, sizeof(text), NULL));
    while (!strstr(text, how_many));
}

static void a_waiter_is_withdrawn_and_asks_again(const struct laxity_gpus *gpus)
{
    struct waiter waiter = { .gpus = gpus };
    struct laxity_gpu_client *client;
    pthread_t thread;

    EXPECT(pthread_barrier_init(&waiter.is_known, NULL, 2) == 0);
    OK(laxity_gpus_register(gpus, "holder", 0, 0, &client));
    OK(laxity_gpu_token(client, -1, 0, NULL));
    EXPECT(pthread_create(&thread, NULL, wait_for_token, &waiter) == 0);
    pthread_barrier_wait(&waiter.is_known);
    until_waiting(gpus, "2 clients, 1 waiting");
    OK(laxity_budget_exhaust(waiter.budget));
    OK(laxity_budget_exhaust(waiter.budget));
    until_waiting(gpus, "2 clients, 0 waiting");
    OK(laxity_gpu_token_release(client));
    OK(laxity_gpu_token(client, -1, 0, NULL)); // no other client was granted it
    OK(laxity_budget_replenish(waiter.budget));
    until_waiting(gpus, "2 clients, 1 waiting");
    OK(laxity_gpu_client_release(&client));
    EXPECT(pthread_join(thread, NULL) == 0);

    OK(laxity_budget_exhaust(waiter.budget)); // of a client that is released
    OK(laxity_budget_release(&waiter.budget));
    OK(laxity_budget_release(&waiter.budget));
    EXPECT(laxity_budget_exhaust(waiter.budget) == LAXITY_ERROR_NULL);
    EXPECT(laxity_budget_replenish((const struct laxity_budget *)gpus) == LAXITY_ERROR_HANDLE);
    EXPECT(pthread_barrier_destroy(&waiter.is_known) == 0);
}

static void a_job_that_overruns_lets_go_of_its_token(const struct laxity_gpus *gpus, const char *name)
{
    const struct laxity_device_config config = { .name = name };
    struct laxity_device *device;
    struct laxity_device_thread *thread;
    struct laxity_budget *budget;
    bool holds;

    OK(laxity_device_open(&config, gpus, &device));
    OK(laxity_device_register(device, "overruns", 0, 0, &thread));
    OK(laxity_device_budget(thread, &budget));
    OK(laxity_device_begin_job(thread, 0, 0, 0));
    OK(laxity_device_launch_timed(thread, 1));
    OK(laxity_budget_exhaust(budget));
    OK(laxity_device_holds_token(thread, &holds));
    EXPECT(holds); // until its next operation
    EXPECT(laxity_device_launch_timed(thread, 1) == LAXITY_ERROR_EXHAUSTED);
    EXPECT(strstr(laxity_last_error()->message, "budget"));
    OK(laxity_device_holds_token(thread, &holds));
    EXPECT(!holds);
    OK(laxity_budget_replenish(budget));
    OK(laxity_device_launch_timed(thread, 1));
    OK(laxity_budget_release(&budget));
    OK(laxity_device_thread_release(&thread));
    OK(laxity_device_release(&device));
}

static void without_an_arbitration_there_is_no_budget(const char *name)
{
    const struct laxity_device_config config = { .name = name };
    struct laxity_device *device;
    struct laxity_device_thread *thread;
    struct laxity_budget *budget = (void *)8;

    OK(laxity_device_open(&config, NULL, &device));
    OK(laxity_device_register(device, "free", 0, 0, &thread));
    OK(laxity_device_budget(thread, &budget));
    EXPECT(budget == NULL);
    EXPECT(laxity_device_budget(thread, NULL) == LAXITY_ERROR_NULL);
    OK(laxity_device_thread_release(&thread));
    OK(laxity_device_release(&device));
}

int main(int argc, char **argv)
{
    struct laxity_gpus *gpus;
    char name[64];

    EXPECT(argc == 2);
    snprintf(name, sizeof(name), "c-budgets-%d", (int)getpid());
    OK(laxity_gpus_create_or_attach(argv[1], "g", &one, &gpus));
    a_waiter_is_withdrawn_and_asks_again(gpus);
    a_job_that_overruns_lets_go_of_its_token(gpus, name);
    without_an_arbitration_there_is_no_budget(name);
    OK(laxity_gpus_release(&gpus));
    puts("ok");
    return 0;
}
