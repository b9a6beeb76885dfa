/* What the programs of the tests share: a device, a context, kernels, and calls that must succeed. */
#ifndef LAXITY_TEST_PROGRAM_H
#define LAXITY_TEST_PROGRAM_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_program program;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cl_int status_ = (call);                                                                                       \
        if (status_ != CL_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, status_);                                    \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *const source =
    "__kernel void spin(__global uint *words, uint rounds) {\n"
    "    uint word = words[get_global_id(0)];\n"
    "    for (uint round = 0; round < rounds; round++) word = word * 1664525u + 1013904223u;\n"
    "    words[get_global_id(0)] = word;\n"
    "}\n"
    "__kernel void add(__global uint *words, uint by) { words[get_global_id(0)] += by; }\n"
    "__kernel void twice(__global uint *words, uint by) { words[get_global_id(0)] = words[get_global_id(0)] * 2 + by; }\n";

/* Exits with 77 where there is no device. */
static void begin(void) {
    cl_int status;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
        fprintf(stderr, "no OpenCL device\n");
        exit(77);
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    OK(status);
    const char *text = source;
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
}

static cl_command_queue new_queue(cl_command_queue_properties properties) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &status);
    OK(status);
    return queue;
}

static cl_mem new_buffer(size_t bytes) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &status);
    OK(status);
    return buffer;
}

__attribute__((unused)) static cl_kernel new_kernel(const char *name, cl_mem buffer, cl_uint number) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof number, &number));
    return kernel;
}

__attribute__((unused)) static unsigned long sum(const cl_uint *words, size_t count) {
    unsigned long total = 0;
    for (size_t at = 0; at < count; at++) total = total * 31 + words[at];
    return total;
}

#endif
