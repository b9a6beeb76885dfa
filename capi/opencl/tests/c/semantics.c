/* Each case is a use of OpenCL whose result does not depend on time: what it prints must be the same with any layer. */
#include "program.h"

#include <pthread.h>

#define COUNT 4096
#define BYTES (COUNT * sizeof(cl_uint))

static cl_uint words[COUNT];
static const size_t global = COUNT;
static cl_mem queue_buffer;

static void fill(void) {
    for (size_t at = 0; at < COUNT; at++) words[at] = (cl_uint)at * 7 + 1;
}

static void report(const char *name, cl_command_queue queue, cl_mem buffer) {
    cl_uint out[COUNT];
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, out, 0, NULL, NULL));
    printf("%s %lx\n", name, sum(out, COUNT));
}

static void in_order(cl_command_queue queue) {
    cl_mem buffer = new_buffer(BYTES);
    cl_kernel add = new_kernel("add", buffer, 5), twice = new_kernel("twice", buffer, 3);
    fill();
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, words, 0, NULL, NULL));
    for (int round = 0; round < 40; round++) {
        OK(clEnqueueNDRangeKernel(queue, round % 3 ? add : twice, 1, NULL, &global, NULL, 0, NULL, NULL));
        if (round == 20) OK(clFinish(queue));
    }
    report("in_order", queue, buffer);
    clReleaseKernel(add), clReleaseKernel(twice), clReleaseMemObject(buffer);
}

/* The thread that waits for an operation is the one that lets it run, later. */
static void user_events(cl_command_queue queue) {
    cl_int status;
    cl_mem buffer = new_buffer(BYTES);
    cl_kernel add = new_kernel("add", buffer, 5), twice = new_kernel("twice", buffer, 3);
    fill();
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    cl_event first = clCreateUserEvent(context, &status), done;
    OK(status);
    OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 1, &first, NULL));
    OK(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &global, NULL, 0, NULL, &done));
    OK(clFlush(queue));
    OK(clSetUserEventStatus(first, CL_COMPLETE));
    OK(clWaitForEvents(1, &done));
    cl_int state;
    OK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    printf("user_events status %d\n", state);
    report("user_events", queue, buffer);
    clReleaseEvent(first), clReleaseEvent(done);
    clReleaseKernel(add), clReleaseKernel(twice), clReleaseMemObject(buffer);
}

static void two_queues(cl_command_queue queue) {
    cl_command_queue other = new_queue(0);
    cl_mem buffer = new_buffer(BYTES);
    cl_kernel add = new_kernel("add", buffer, 5), twice = new_kernel("twice", buffer, 3);
    fill();
    cl_event before = NULL, event;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, words, 0, NULL, &before));
    for (int round = 0; round < 30; round++) {
        cl_command_queue here = round % 2 ? queue : other;
        OK(clEnqueueNDRangeKernel(here, round % 3 ? add : twice, 1, NULL, &global, NULL, 1, &before, &event));
        clReleaseEvent(before);
        OK(clFlush(here));
        before = event;
    }
    OK(clWaitForEvents(1, &before));
    clReleaseEvent(before);
    report("two_queues", queue, buffer);
    OK(clFinish(other));
    clReleaseKernel(add), clReleaseKernel(twice), clReleaseMemObject(buffer), clReleaseCommandQueue(other);
}

static void out_of_order(void) {
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_int status;
    cl_mem buffer = new_buffer(BYTES), independent = new_buffer(BYTES);
    cl_kernel add = new_kernel("add", buffer, 5), twice = new_kernel("twice", buffer, 3);
    cl_kernel alone = new_kernel("add", independent, 9);
    fill();
    cl_event gate = clCreateUserEvent(context, &status), written, added;
    OK(status);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, words, 1, &gate, &written));
    OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 1, &written, &added));
    OK(clEnqueueWriteBuffer(queue, independent, CL_FALSE, 0, BYTES, words, 0, NULL, NULL));
    OK(clEnqueueMarkerWithWaitList(queue, 1, &added, NULL));
    OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
    OK(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clEnqueueNDRangeKernel(queue, alone, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clFlush(queue));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(queue));
    report("out_of_order", queue, buffer);
    report("out_of_order independent", queue, independent);
    clReleaseEvent(gate), clReleaseEvent(written), clReleaseEvent(added);
    clReleaseKernel(add), clReleaseKernel(twice), clReleaseKernel(alone);
    clReleaseMemObject(buffer), clReleaseMemObject(independent), clReleaseCommandQueue(queue);
}

static void maps_and_copies(cl_command_queue queue) {
    cl_int status;
    cl_mem buffer = new_buffer(BYTES), other = new_buffer(BYTES);
    fill();
    cl_uint *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &status);
    OK(status);
    memcpy(mapped, words, BYTES);
    OK(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    OK(clEnqueueCopyBuffer(queue, buffer, other, 0, 256, BYTES - 256, 0, NULL, NULL));
    cl_uint pattern = 0xabcdef;
    OK(clEnqueueFillBuffer(queue, other, &pattern, sizeof pattern, 0, 256, 0, NULL, NULL));
    size_t origin[3] = {0, 0, 0}, host[3] = {16, 2, 0}, region[3] = {64, 8, 1};
    OK(clEnqueueWriteBufferRect(queue, other, CL_FALSE, origin, host, region, 128, 0, 256, 0, words, 0, NULL, NULL));
    size_t to[3] = {32, 4, 0};
    OK(clEnqueueCopyBufferRect(queue, other, buffer, origin, to, region, 128, 0, 128, 0, 0, NULL, NULL));
    report("copies", queue, other);
    cl_uint *seen = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &status);
    OK(status);
    printf("maps %lx\n", sum(seen, COUNT));
    OK(clEnqueueUnmapMemObject(queue, buffer, seen, 0, NULL, NULL));
    OK(clFinish(queue));
    clReleaseMemObject(buffer), clReleaseMemObject(other);
}

struct Callback {
    cl_command_queue queue;
    cl_kernel kernel;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int called;
};

static void CL_CALLBACK called(cl_event event, cl_int status, void *data) {
    struct Callback *callback = data;
    (void)event;
    OK(clEnqueueNDRangeKernel(callback->queue, callback->kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    OK(clFlush(callback->queue));
    pthread_mutex_lock(&callback->lock);
    callback->called = 1 + status;
    pthread_cond_signal(&callback->changed);
    pthread_mutex_unlock(&callback->lock);
}

/* A program issues from a callback of the driver. */
static void callbacks(cl_command_queue queue) {
    cl_mem buffer = new_buffer(BYTES);
    struct Callback callback = {queue, new_kernel("twice", buffer, 11), PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    fill();
    cl_event written;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, words, 0, NULL, &written));
    OK(clSetEventCallback(written, CL_COMPLETE, called, &callback));
    OK(clFlush(queue));
    pthread_mutex_lock(&callback.lock);
    while (!callback.called) pthread_cond_wait(&callback.changed, &callback.lock);
    pthread_mutex_unlock(&callback.lock);
    OK(clFinish(queue));
    report("callbacks", queue, buffer);
    clReleaseEvent(written), clReleaseKernel(callback.kernel), clReleaseMemObject(buffer);
}

/* The queue is given up while what was issued waits for an event that comes later. */
static void release_early(cl_command_queue queue) {
    cl_int status;
    cl_command_queue given_up = new_queue(0);
    cl_mem buffer = new_buffer(BYTES);
    cl_kernel add = new_kernel("add", buffer, 77);
    fill();
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    cl_event gate = clCreateUserEvent(context, &status), done;
    OK(status);
    OK(clEnqueueNDRangeKernel(given_up, add, 1, NULL, &global, NULL, 1, &gate, &done));
    OK(clFlush(given_up));
    OK(clReleaseCommandQueue(given_up));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &done));
    report("release_early", queue, buffer);
    clReleaseEvent(gate), clReleaseEvent(done), clReleaseKernel(add), clReleaseMemObject(buffer);
}

static void *issues(void *data) {
    cl_mem buffer = data;
    cl_command_queue queue = new_queue(0);
    cl_kernel add = new_kernel("add", buffer, 1);
    for (int round = 0; round < 50; round++) {
        OK(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, NULL));
        if (round % 7 == 0) OK(clFinish(queue));
    }
    OK(clFinish(queue));
    clReleaseKernel(add), clReleaseCommandQueue(queue);
    return NULL;
}

static void threads(cl_command_queue queue) {
    pthread_t all[4];
    cl_mem buffers[4];
    fill();
    for (int at = 0; at < 4; at++) {
        buffers[at] = new_buffer(BYTES);
        OK(clEnqueueWriteBuffer(queue, buffers[at], CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
        pthread_create(&all[at], NULL, issues, buffers[at]);
    }
    for (int at = 0; at < 4; at++) {
        pthread_join(all[at], NULL);
        report("threads", queue, buffers[at]);
        clReleaseMemObject(buffers[at]);
    }
}

static void CL_CALLBACK native(void *arguments) {
    cl_uint *target = *(cl_uint **)arguments;
    *target = 1234;
}

static void other_operations(cl_command_queue queue) {
    cl_mem buffer = new_buffer(BYTES);
    fill();
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    cl_kernel add = new_kernel("add", buffer, 2);
    OK(clEnqueueTask(queue, add, 0, NULL, NULL));
    cl_uint target = 0, *pointer = &target;
    cl_int status = clEnqueueNativeKernel(queue, native, &pointer, sizeof pointer, 0, NULL, NULL, 0, NULL, NULL);
    OK(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, NULL));
    cl_event marker;
    OK(clEnqueueMarker(queue, &marker));
    OK(clEnqueueBarrier(queue));
    OK(clWaitForEvents(1, &marker));
    printf("native %d %u\n", status, target);
    report("other_operations", queue, buffer);
    clReleaseEvent(marker), clReleaseKernel(add), clReleaseMemObject(buffer);
}

/* How many references a queue has is the driver's: its own commands count. That they are enough is the program's. */
static void references(cl_command_queue queue) {
    OK(clRetainCommandQueue(queue));
    OK(clReleaseCommandQueue(queue));
    OK(clFinish(queue));
    for (int round = 0; round < 200; round++) {
        cl_command_queue other = new_queue(round % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
        cl_event written;
        OK(clEnqueueWriteBuffer(other, queue_buffer, CL_FALSE, 0, 64, words, 0, NULL, &written));
        OK(clReleaseCommandQueue(other));
        OK(clWaitForEvents(1, &written));
        clReleaseEvent(written);
    }
    printf("references\n");
}

int main(void) {
    begin();
    cl_command_queue queue = new_queue(0);
    in_order(queue);
    user_events(queue);
    two_queues(queue);
    out_of_order();
    maps_and_copies(queue);
    callbacks(queue);
    release_early(queue);
    threads(queue);
    other_operations(queue);
    queue_buffer = new_buffer(BYTES);
    references(queue);
    clReleaseMemObject(queue_buffer);
    OK(clReleaseCommandQueue(queue));
    clReleaseProgram(program), clReleaseContext(context);
    printf("end\n");
    return 0;
}
