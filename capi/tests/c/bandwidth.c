// The bandwidth lock from C: sections nest, streams are told apart, and what a released client held is free. Prints "ok".

#include <laxity.h>
#include <stdio.h>
#include <unistd.h>

#include "expect.h"

static const struct laxity_gpu_config one = { .cpus = 2, .gpus = 1 };

// The least budget of the holders, 0 while the lock is free.
static uint64_t least(const struct laxity_gpus *gpus)
{
    bool is_held = true;
    uint64_t budget = 1;

    OK(laxity_bandwidth_budget(gpus, &is_held, &budget));
    EXPECT(is_held == (budget != 0));
    return budget;
}

static void sections_nest_and_streams_hold(const struct laxity_gpus *gpus)
{
    struct laxity_gpu_client *client;

    OK(laxity_gpus_register(gpus, "holder", 0, 0, &client));
    EXPECT(laxity_bandwidth_unlock(client) == LAXITY_ERROR_ORDER);
    OK(laxity_bandwidth_lock(client, 100));
    OK(laxity_bandwidth_lock(client, 40));
    EXPECT(least(gpus) == 40);
    OK(laxity_bandwidth_launch(client, 7, 30));
    OK(laxity_bandwidth_unlock(client));
    EXPECT(least(gpus) == 30);
    OK(laxity_bandwidth_unlock(client));
    OK(laxity_bandwidth_launch(client, 8, 50));
    OK(laxity_bandwidth_synchronize(client, 7));
    EXPECT(least(gpus) == 50);
    OK(laxity_bandwidth_synchronize_all(client));
    EXPECT(least(gpus) == 0);
    OK(laxity_bandwidth_lock(client, 10));
    OK(laxity_gpu_client_release(&client));
    EXPECT(least(gpus) == 0);
}

int main(int argc, char **argv)
{
    struct laxity_gpus *gpus;
    struct laxity_device *device;
    char name[64];

    EXPECT(argc == 2);
    snprintf(name, sizeof(name), "c-bandwidth-%d", (int)getpid());
    OK(laxity_gpus_create_or_attach(argv[1], "g", &one, &gpus));
    sections_nest_and_streams_hold(gpus);
    OK(laxity_bandwidth_count(gpus, 4096));
    EXPECT(laxity_bandwidth_budget(gpus, NULL, NULL) == LAXITY_ERROR_NULL);
    const struct laxity_device_config config = { .name = name, .bandwidth = 64000000 };
    EXPECT(laxity_device_open(&config, NULL, &device) == LAXITY_ERROR_CONFIG); // the lock is an arbitration's
    OK(laxity_gpus_release(&gpus));
    puts("ok");
    return 0;
}
