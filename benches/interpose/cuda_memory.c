/* A program that memory bounds: reads and writes 256 MiB, so often. Prints its rate, for bench-gpu-real. */
#include "driver.h"

#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(void)
{
	enum { ROUNDS = 20, KERNELS = 50 };
	uint32_t length = 64 << 20;
	size_t bytes = length * sizeof(float);
	float a = 0.5, b = 1;
	double best = 0;
	CUcontext context;
	CUmodule module;
	CUfunction affine;
	CUstream stream;
	CUdeviceptr from, to;

	open_driver();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, PTX));
	OK(cuModuleGetFunction(&affine, module, "affine"));
	OK(cuStreamCreate(&stream, 1));
	OK(cuMemAlloc(&from, bytes));
	OK(cuMemAlloc(&to, bytes));
	OK(cuMemsetD32(from, 0x3f800000, length));
	void *parameters[] = {&to, &from, &a, &b, &length};
	for (int round = 0; round < ROUNDS; round++) {
		double begin = now();
		for (int kernel = 0; kernel < KERNELS; kernel++)
			OK(cuLaunchKernel(affine, (length + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
		OK(cuStreamSynchronize(stream));
		double rate = 2.0 * bytes * KERNELS / (now() - begin) / 1e9;
		best = rate > best ? rate : best;
	}
	printf("%f\n", best);
	return 0;
}
