/* What a call and a kernel cost, for bench-interpose to compare with and without the layer: measures once for each line of its
 * input, and prints a line of numbers. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cl_int status_ = (call);                                                                                       \
        if (status_ != CL_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s: %d\n", #call, status_);                                                               \
            exit(status_ == -1001 || status_ == CL_DEVICE_NOT_FOUND ? 77 : 3);                                         \
        }                                                                                                              \
    } while (0)

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double lower_quartile(double *values, int count) {
    qsort(values, count, sizeof *values, by_size);
    return values[count / 4];
}

static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem buffer;

/* A few milliseconds of each kind. */
static void measure(void) {
    enum { ROUNDS = 200, BATCHES = 20, CALLS = 1000, QUEUES = 10, QUEUED = 100 };
    static double kernels[ROUNDS], calls[BATCHES], queued[QUEUES], reads[ROUNDS];
    static char bytes[4096];
    cl_uint by = 1;
    size_t global = 64;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_us();
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
        kernels[round] = now_us() - begin;
    }
    /* A call that the layer does not have in the place of the driver's. */
    for (int round = 0; round < BATCHES; round++) {
        double begin = now_us();
        for (int call = 0; call < CALLS; call++) OK(clSetKernelArg(kernel, 1, sizeof by, &by));
        calls[round] = (now_us() - begin) * 1e3 / CALLS;
    }
    for (int round = 0; round < QUEUES; round++) {
        double begin = now_us();
        for (int launch = 0; launch < QUEUED; launch++)
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
        queued[round] = (now_us() - begin) / QUEUED;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_us();
        OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof bytes, bytes, 0, NULL, NULL));
        reads[round] = now_us() - begin;
    }
    printf("%f %f %f %f\n", lower_quartile(calls, BATCHES), lower_quartile(kernels, ROUNDS),
           lower_quartile(queued, QUEUES), lower_quartile(reads, ROUNDS));
    fflush(stdout);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    const char *text = "__kernel void add(__global uint *words, uint by) { words[get_global_id(0)] += by; }";
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    kernel = clCreateKernel(program, "add", &status);
    OK(status);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    OK(status);
    cl_uint by = 1;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof by, &by));
    queue = clCreateCommandQueue(context, device, 0, &status);
    OK(status);
    char line[16];
    while (fgets(line, sizeof line, stdin)) measure();
    return 0;
}
