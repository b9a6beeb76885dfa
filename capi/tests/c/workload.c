// A workload file from C: `workload FILE TRACE` runs its nodes camera and fuse. Prints "ok".

#include <laxity.h>
#include <laxity/code.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

#define MS UINT64_C(1000000)

static struct laxity_workload *workload;
static uint64_t sent, got, sum;

static int camera(struct laxity_code_call *call)
{
    uint64_t *value = call->outputs[0].messages[0].data;

    EXPECT(call->state == &sent && call->output_count == 1 && strcmp(call->outputs[0].peer, "fuse") == 0);
    *value = call->job * 3;
    call->outputs[0].messages[0].length = sizeof(*value);
    sent++;
    return 0;
}

static int fuse(struct laxity_code_call *call)
{
    const uint64_t *value = call->inputs[0].messages[0].data;

    EXPECT(call->inputs[0].messages[0].length == sizeof(*value) && *value == call->job * 3);
    got++;
    sum += *value;
    return 0;
}

static int fails(struct laxity_code_call *call)
{
    return call->job == 2 ? 7 : 0;
}

// Everything but a stop has to wait for the run that it is called in.
static int stops(struct laxity_code_call *call)
{
    struct laxity_task_result result;

    EXPECT(laxity_workload_result(workload, 0, &result) == LAXITY_ERROR_BUSY);
    EXPECT(laxity_workload_release(&workload) == LAXITY_ERROR_BUSY && workload != NULL);
    if (call->job == 1)
        OK(laxity_workload_stop(workload));
    return 0;
}

static void misuse(const char *path)
{
    struct laxity_workload *none = NULL;
    struct laxity_run_options options = {0};
    struct laxity_task_result result;
    const char *name;

    EXPECT(laxity_workload_load("/no/such/file.toml", &none) == LAXITY_ERROR_WORKLOAD && none == NULL);
    EXPECT(strstr(laxity_last_error()->message, "/no/such/file.toml"));
    EXPECT(laxity_workload_load(path, NULL) == LAXITY_ERROR_NULL);
    EXPECT(laxity_workload_bind(NULL, "t", fuse, NULL, false) == LAXITY_ERROR_NULL);
    EXPECT(laxity_workload_bind(workload, "fuse", fuse, NULL, false) == LAXITY_ERROR_NO_TASK);
    EXPECT(strstr(laxity_last_error()->message, "/fuse"));
    EXPECT(laxity_workload_bind(workload, "beside", NULL, NULL, false) == LAXITY_ERROR_NULL);
    EXPECT(laxity_workload_run(workload, NULL) == LAXITY_ERROR_NULL);
    options.scheduler = 17;
    EXPECT(laxity_workload_run(workload, &options) == LAXITY_ERROR_VALUE);
    EXPECT(laxity_workload_name(workload, 3, &name) == LAXITY_ERROR_NO_TASK);
    OK(laxity_workload_result(workload, 2, &result));
    EXPECT(result.released == 0 && result.response_max_ns == 0);
    EXPECT(laxity_workload_result(workload, 3, &result) == LAXITY_ERROR_NO_TASK);
}

int main(int argc, char **argv)
{
    struct laxity_run_options options = {.duration_ns = 100 * MS, .scheduler = LAXITY_SCHEDULER_OTHER};
    struct laxity_task_result result;
    const char *names[3];
    uint32_t count;

    EXPECT(argc == 3);
    OK(laxity_workload_load(argv[1], &workload));
    OK(laxity_workload_tasks(workload, &count));
    EXPECT(count == 3);
    for (uint32_t task = 0; task < count; task++)
        OK(laxity_workload_name(workload, task, &names[task]));
    EXPECT(strcmp(names[0], "beside") == 0 && strstr(names[1], "/camera") && strstr(names[2], "/fuse"));
    misuse(argv[1]);

    OK(laxity_workload_bind(workload, names[1], camera, &sent, false));
    OK(laxity_workload_bind(workload, names[2], fuse, NULL, false));
    options.trace = argv[2];
    OK(laxity_workload_run(workload, &options));
    EXPECT(sent == 5 && got == 5 && sum == 3 * (0 + 1 + 2 + 3 + 4));
    OK(laxity_workload_result(workload, 2, &result));
    EXPECT(result.released == 5 && result.completed == 5 && result.missed <= 5);
    EXPECT(result.response_mean_ns > 0 && result.response_mean_ns <= result.response_max_ns);

    options.trace = NULL;
    OK(laxity_workload_bind(workload, names[2], fails, NULL, false));
    EXPECT(laxity_workload_run(workload, &options) == LAXITY_ERROR_CODE);
    EXPECT(strstr(laxity_last_error()->message, "job 2: its code failed"));
    OK(laxity_workload_result(workload, 2, &result));
    EXPECT(result.completed == 2);

    OK(laxity_workload_bind(workload, names[2], stops, NULL, false));
    options.duration_ns = 3600 * UINT64_C(1000) * MS;
    OK(laxity_workload_run(workload, &options));
    OK(laxity_workload_result(workload, 0, &result));
    EXPECT(result.released < 1000);
    OK(laxity_workload_release(&workload));
    EXPECT(workload == NULL);
    puts("ok");
    return 0;
}
