// A child made by fork() has no part in what its parent is attached to: calls with handles of the parent are refused,
// releases let go of the child's copy alone, and the parent goes on as if there had been no child. Prints "ok".

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "expect.h"

#define FORKED(call) EXPECT((call) == LAXITY_ERROR_FORKED)

static const char *directory;
static char own[64];

// Does that in a child, which must not hang.
static void in_a_child(void (*child)(void))
{
    int status;
    const pid_t pid = fork();

    EXPECT(pid >= 0);
    if (pid == 0) {
        alarm(30);
        child();
        _exit(0);
    }
    EXPECT(waitpid(pid, &status, 0) == pid);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct laxity_registry *registry;
static struct laxity_spec *spec;
static struct laxity_graph *graph;
static struct laxity_node *camera, *filter;
static struct laxity_job *job;

static void use_the_graph(void)
{
    struct laxity_status status;
    struct laxity_graph *other;
    struct laxity_node *node;
    struct laxity_job *next;
    void *message;
    size_t length;
    uint64_t number;

    FORKED(laxity_job_index(job, &number));
    FORKED(laxity_job_output(job, 0, 0, &message, &length));
    FORKED(laxity_job_complete(job));
    FORKED(laxity_node_wait(camera, 0, &next));
    FORKED(laxity_node_wait(filter, LAXITY_FOREVER, &next));
    FORKED(laxity_graph_claim(graph, "camera", &node));
    FORKED(laxity_graph_status(graph, "camera", &status));
    FORKED(laxity_graph_terminate(graph, NULL));
    node = filter;
    FORKED(laxity_node_terminate(&node));
    EXPECT(node == filter);
    // By itself it takes part.
    OK(laxity_registry_attach(registry, own, 0, &other));
    OK(laxity_graph_status(other, "camera", &status));
    EXPECT(status.ownership == LAXITY_CLAIMED && status.started == 1 && status.completed == 0);
    OK(laxity_graph_release(&other));
    OK(laxity_node_release(&camera));
    OK(laxity_node_release(&filter));
    OK(laxity_graph_release(&graph));
    OK(laxity_spec_release(&spec));
    OK(laxity_registry_release(&registry));
    EXPECT(camera == NULL && graph == NULL && registry == NULL);
}

static void nodes_and_jobs_stay_their_process(void)
{
    const struct laxity_edge edge = { .message_bytes = 8, .slots = 4 };
    struct laxity_status status;
    uint64_t tokens;

    OK(laxity_registry_new(directory, &registry));
    OK(laxity_spec_new(own, &spec));
    OK(laxity_spec_node(spec, "camera", 1000000));
    OK(laxity_spec_node(spec, "filter", 0));
    OK(laxity_spec_edge(spec, "camera", "filter", &edge));
    OK(laxity_registry_create(registry, spec, &graph));
    OK(laxity_graph_claim(graph, "camera", &camera));
    OK(laxity_graph_claim(graph, "filter", &filter));
    OK(laxity_node_wait(camera, LAXITY_FOREVER, &job));
    in_a_child(use_the_graph);
    OK(laxity_graph_status(graph, "filter", &status));
    EXPECT(status.ownership == LAXITY_CLAIMED && status.pid == (uint32_t)getpid() && !status.has_terminated);
    OK(laxity_job_complete(job));
    OK(laxity_graph_tokens(graph, 0, &tokens));
    EXPECT(tokens == 1);
    OK(laxity_node_wait(filter, LAXITY_FOREVER, &job));
    OK(laxity_job_complete(job));
    OK(laxity_node_release(&camera));
    OK(laxity_node_release(&filter));
    OK(laxity_graph_release(&graph));
    OK(laxity_spec_release(&spec));
}

static struct laxity_gpus *gpus;
static struct laxity_gpu_client *client;

static void use_the_token(void)
{
    FORKED(laxity_gpu_token_release(client));
    FORKED(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, 0));
    OK(laxity_gpu_client_release(&client));
    OK(laxity_gpus_release(&gpus));
}

static void tokens_stay_their_thread(void)
{
    const struct laxity_gpu_config config = { .cpus = 2, .gpus = 1 };

    OK(laxity_gpus_create_or_attach(directory, own, &config, &gpus));
    OK(laxity_gpus_register(gpus, "owner", 0, 0, &client));
    OK(laxity_gpu_token(client, -1, LAXITY_FOREVER, NULL));
    in_a_child(use_the_token);
    OK(laxity_gpu_engine(client, LAXITY_ENGINE_EXECUTION, LAXITY_FOREVER));
    OK(laxity_gpu_token_release(client));
    OK(laxity_gpu_client_release(&client));
    OK(laxity_gpus_release(&gpus));
}

static struct laxity_device *device;
static struct laxity_buffer *buffer;
static struct laxity_device_thread *thread;

static int32_t count(void *argument, const struct laxity_view *view)
{
    (void)view;
    *(int *)argument += 1;
    return 0;
}

static void use_the_device(void)
{
    struct laxity_buffer *more;
    struct laxity_device_thread *other;
    int runs = 0;

    FORKED(laxity_device_launch(thread, count, &runs, 0));
    FORKED(laxity_device_copy_in(thread, buffer, 0, "evil", 5));
    FORKED(laxity_buffer_alloc(device, 0, 8, &more));
    FORKED(laxity_device_register(device, "child", 0, 0, &other));
    OK(laxity_buffer_release(&buffer));
    OK(laxity_device_thread_release(&thread));
    OK(laxity_device_release(&device));
}

// The child opens one of its own, while its parent has one.
static void open_a_device(void)
{
    const struct laxity_device_config config = { .name = own, .memory = 65536 };
    struct laxity_buffer *other;
    int runs = 0;

    OK(laxity_device_open(&config, NULL, &device));
    OK(laxity_buffer_alloc(device, 0, 8, &other));
    OK(laxity_device_register(device, "child", 0, 0, &thread));
    OK(laxity_device_launch(thread, count, &runs, 0));
    EXPECT(runs == 1);
    OK(laxity_device_thread_release(&thread));
    OK(laxity_buffer_release(&other));
    OK(laxity_device_release(&device));
}

static void soft_gpus_stay_their_process(void)
{
    const struct laxity_device_config config = { .name = own, .memory = 65536 };
    char there[6] = "";
    int runs = 0;

    OK(laxity_device_open(&config, NULL, &device));
    OK(laxity_buffer_alloc(device, 0, 6, &buffer));
    OK(laxity_device_register(device, "parent", 0, 0, &thread));
    OK(laxity_device_copy_in(thread, buffer, 0, "hello", 6));
    in_a_child(use_the_device);
    in_a_child(open_a_device);
    OK(laxity_device_launch(thread, count, &runs, 0));
    EXPECT(runs == 1);
    OK(laxity_device_copy_out(thread, buffer, 0, there, 6));
    EXPECT(there[0] == 'h' && there[4] == 'o');
    OK(laxity_device_thread_release(&thread));
    OK(laxity_buffer_release(&buffer));
    OK(laxity_device_release(&device));
}

static struct laxity_vx_verified *verified;
static struct laxity_vx_run *frames;

static int32_t idle(void *argument, struct laxity_vx_job *vx_job)
{
    (void)argument;
    (void)vx_job;
    return 0;
}

static void use_the_run(void)
{
    uint64_t begun;

    FORKED(laxity_vx_run_stop(frames));
    FORKED(laxity_vx_run_terminate(frames));
    FORKED(laxity_vx_run_wait(frames, LAXITY_FOREVER));
    FORKED(laxity_vx_run_counts(frames, &begun, NULL));
    OK(laxity_vx_run_release(&frames));
    EXPECT(frames == NULL);
    OK(laxity_vx_verified_release(&verified));
}

static void vision_graphs_run_on(void)
{
    struct laxity_vx_graph *vision;
    const struct laxity_vx_options options = { .period_ns = 2000000 };
    uint64_t before, after;

    OK(laxity_vx_graph_new(registry, own, &vision));
    OK(laxity_vx_graph_node(vision, "node", NULL, 0, idle, NULL, 0));
    OK(laxity_vx_graph_verify(&vision, &verified));
    OK(laxity_vx_spawn(verified, &options, &frames));
    in_a_child(use_the_run);
    OK(laxity_vx_run_counts(frames, NULL, &before));
    OK(laxity_vx_run_wait_for_frames(frames, before + 5, LAXITY_FOREVER, &after));
    EXPECT(after >= before + 5);
    OK(laxity_vx_run_release(&frames));
    OK(laxity_vx_verified_release(&verified));
}

int main(int count_of_arguments, char **arguments)
{
    EXPECT(count_of_arguments == 2);
    directory = arguments[1];
    snprintf(own, sizeof own, "forked-%d", (int)getpid());
    nodes_and_jobs_stay_their_process();
    tokens_stay_their_thread();
    soft_gpus_stay_their_process();
    vision_graphs_run_on();
    OK(laxity_registry_release(&registry));
    puts("ok");
    return 0;
}
