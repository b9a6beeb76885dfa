/* `threads WHAT`: programs that wait in one thread for what another one does, and calls that the driver refuses. Prints what came
 * out. One that hangs is ended after a minute. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static cl_command_queue shared;
static atomic_int is_over;

static void *finish(void *nothing) {
    (void)nothing;
    while (!is_over) OK(clFinish(shared));
    return NULL;
}

/* One thread waits for a queue to which the other one issues. */
static void finish_beside(void) {
    cl_command_queue other = new_queue(0);
    cl_mem buffer = new_buffer(256);
    cl_uint pattern = 7;
    pthread_t thread;
    shared = new_queue(0);
    OK(pthread_create(&thread, NULL, finish, NULL));
    for (int round = 0; round < 2000; round++) {
        cl_event events[2];
        OK(clEnqueueFillBuffer(other, buffer, &pattern, 4, 0, 256, 0, NULL, &events[0]));
        OK(clFlush(other));
        OK(clEnqueueFillBuffer(shared, buffer, &pattern, 4, 0, 256, 1, events, &events[1]));
        OK(clFlush(shared));
        OK(clWaitForEvents(2, events));
        clReleaseEvent(events[0]), clReleaseEvent(events[1]);
    }
    is_over = 1;
    OK(pthread_join(thread, NULL));
    printf("finish_beside\n");
}

static void *set_later(void *event) {
    usleep(20000);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    return NULL;
}

/* A blocking read in a queue without order, beside an operation that waits for the program. */
static void read_beside(void) {
    cl_int status;
    cl_mem waited = new_buffer(256), read = new_buffer(256);
    cl_uint pattern = 7, words[64];
    pthread_t thread;
    shared = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OK(clEnqueueFillBuffer(shared, read, &pattern, 4, 0, 256, 0, NULL, NULL));
    OK(clFinish(shared));
    cl_event event = clCreateUserEvent(context, &status);
    OK(status);
    OK(clEnqueueFillBuffer(shared, waited, &pattern, 4, 0, 256, 1, &event, NULL));
    OK(pthread_create(&thread, NULL, set_later, event));
    OK(clEnqueueReadBuffer(shared, read, CL_TRUE, 0, 256, words, 0, NULL, NULL));
    OK(clFinish(shared));
    OK(pthread_join(thread, NULL));
    printf("read_beside %u\n", words[63]);
}

/* Two queues of one thread by turns, neither of which is waited for. */
static void by_turns(void) {
    cl_command_queue queues[] = {new_queue(0), new_queue(0)};
    cl_mem buffer = new_buffer(256);
    cl_uint pattern = 7;
    for (int round = 0; round < 10; round++) {
        for (int at = 0; at < 2; at++) {
            cl_event event;
            cl_int state = CL_QUEUED;
            OK(clEnqueueFillBuffer(queues[at], buffer, &pattern, 4, 0, 256, 0, NULL, &event));
            OK(clFlush(queues[at]));
            while (state != CL_COMPLETE) {
                usleep(1000);
                OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
            }
            clReleaseEvent(event);
        }
    }
    printf("by_turns\n");
}

static cl_mem called_back;
static atomic_int rounds;

static void CL_CALLBACK issue_next(cl_event event, cl_int state, void *nothing) {
    (void)state, (void)nothing;
    cl_uint pattern = 7;
    cl_event next;
    clReleaseEvent(event);
    if (++rounds == 20) return;
    OK(clEnqueueFillBuffer(shared, called_back, &pattern, 4, 0, 256, 0, NULL, &next));
    OK(clSetEventCallback(next, CL_COMPLETE, issue_next, NULL));
    OK(clFlush(shared));
}

/* A callback of one queue's operation issues to another queue. */
static void callback(void) {
    cl_command_queue first = new_queue(0);
    cl_uint pattern = 7;
    cl_event event;
    shared = new_queue(0);
    called_back = new_buffer(256);
    OK(clEnqueueFillBuffer(first, called_back, &pattern, 4, 0, 256, 0, NULL, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, issue_next, NULL));
    OK(clFlush(first));
    while (rounds < 20) usleep(1000);
    printf("callback\n");
}

/* What is not within its buffer is refused before a byte is copied. */
static void beyond(void) {
    enum { BYTES = 1 << 20 };
    static unsigned char ones[2 * BYTES], words[2 * BYTES];
    cl_command_queue queue = new_queue(0);
    cl_mem buffer = new_buffer(BYTES);
    cl_uint zero = 0;
    cl_int written, read;
    size_t changed = 0;
    memset(ones, 1, sizeof ones);
    OK(clEnqueueFillBuffer(queue, buffer, &zero, 4, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(queue));
    written = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 4096, BYTES, ones, 0, NULL, NULL);
    read = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4096, BYTES, ones, 0, NULL, NULL);
    OK(clFinish(queue));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    for (size_t at = 0; at < sizeof ones; at++) changed += words[at] || !ones[at];
    OK(clFinish(queue));
    printf("beyond %d %d %zu\n", written, read, changed);
}

/* No event to write to. */
static void marker(void) {
    cl_command_queue queue = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    printf("marker %d\n", clEnqueueMarker(queue, NULL));
}

/* Three jobs with deadlines. */
static void announces(void) {
    void (*begin_job)(uint64_t) = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "laxity_program_begin_job");
    void (*end_job)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "laxity_program_end_job");
    cl_command_queue queue = new_queue(0);
    cl_mem buffer = new_buffer(256);
    cl_uint pattern = 7;
    for (int job = 0; job < 3; job++) {
        struct timespec now;
        OK(clock_gettime(CLOCK_MONOTONIC, &now));
        if (begin_job) begin_job((now.tv_sec + 10) * 1000000000ull + now.tv_nsec);
        OK(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, 256, 0, NULL, NULL));
        OK(clFinish(queue));
        if (end_job) end_job();
    }
    printf("announces\n");
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"finish_beside", finish_beside}, {"read_beside", read_beside}, {"by_turns", by_turns},
                 {"callback", callback}, {"beyond", beyond}, {"marker", marker}, {"announces", announces}};
    alarm(60);
    begin();
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        if (count > 1 && !strcmp(words[1], cases[at].name)) cases[at].run();
    return 0;
}
