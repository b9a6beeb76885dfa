/* What a call and a kernel of CUDA cost, to compare with and without the layer: measures once for each line of its input, and
 * prints a line of numbers. */
#include "driver.h"

#include <time.h>

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int by_size(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static double lower_quartile(double *values, int count)
{
	qsort(values, count, sizeof *values, by_size);
	return values[count / 4];
}

static CUfunction increment;
static CUstream stream;
static CUevent event;
static CUdeviceptr counter;

static void measure(void)
{
	enum { ROUNDS = 100, BATCHES = 20, CALLS = 1000, QUEUES = 3, QUEUED = 100 };
	static double kernels[ROUNDS], launches[ROUNDS], calls[BATCHES], queued[QUEUES];
	void *parameters[] = {&counter};

	for (int round = 0; round < ROUNDS; round++) {
		double begin = now_us();
		OK(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		launches[round] = now_us() - begin;
		OK(cuStreamSynchronize(stream));
		kernels[round] = now_us() - begin;
	}
	/* A call that the layer has in the place of the driver's, and passes on. */
	for (int round = 0; round < BATCHES; round++) {
		double begin = now_us();
		for (int call = 0; call < CALLS; call++)
			OK(cuEventQuery(event));
		calls[round] = (now_us() - begin) * 1e3 / CALLS;
	}
	for (int round = 0; round < QUEUES; round++) {
		double begin = now_us();
		for (int launch = 0; launch < QUEUED; launch++)
			OK(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		OK(cuStreamSynchronize(stream));
		queued[round] = (now_us() - begin) / QUEUED;
	}
	printf("%f %f %f %f\n", lower_quartile(calls, BATCHES), lower_quartile(kernels, ROUNDS),
	       lower_quartile(launches, ROUNDS), lower_quartile(queued, QUEUES));
	fflush(stdout);
}

int main(void)
{
	char line[16];
	CUcontext context;
	CUmodule module;

	open_driver();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, PTX));
	OK(cuModuleGetFunction(&increment, module, "increment"));
	OK(cuStreamCreate(&stream, 1));
	OK(cuEventCreate(&event, 2));
	OK(cuMemAlloc(&counter, 4));
	while (fgets(line, sizeof line, stdin))
		measure();
	return 0;
}
