/* A context that all threads of a test use, and kernels: every program of the soft driver's tests begins so. */
#ifndef START_H
#define START_H

#include "driver.h"

#include <pthread.h>
#include <unistd.h>

static CUcontext context;
static CUfunction increment;

static inline void start(void)
{
	CUmodule module;

	open_driver();
	/* A test that hangs ends: a signal without a handler. */
	alarm(120);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, PTX));
	OK(cuModuleGetFunction(&increment, module, "increment"));
}

static inline CUdeviceptr zeros(size_t words)
{
	CUdeviceptr memory;

	OK(cuMemAlloc(&memory, words * 4));
	OK(cuMemsetD32(memory, 0, words));
	return memory;
}

static inline void launch_increment(CUstream stream, CUdeviceptr counter)
{
	void *parameters[] = {&counter};

	OK(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

/* A thread of the test. */
static inline pthread_t spawn(void *(*body)(void *), void *data)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, data))
		exit(4);
	return thread;
}

static inline void join(pthread_t thread)
{
	if (pthread_join(thread, NULL))
		exit(4);
}

#endif
