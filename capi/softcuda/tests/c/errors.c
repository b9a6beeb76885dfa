/* Calls that are wrong, and what CUDA's documentation says of each. */
#include "driver.h"

#include <sys/wait.h>
#include <unistd.h>

static int inside = -1;

static void calls_the_driver(void *data)
{
	int count;

	(void)data;
	inside = cuDeviceGetCount(&count);
}

int main(void)
{
	open_driver();
	int count;
	CUcontext context, none = NULL;
	CUdeviceptr memory, small;
	CUstream stream;
	CUevent event, other;
	CUmodule module;
	CUfunction timed, nothing, spin;
	CUgraph graph;
	float time;
	char bytes[64];
	unsigned microseconds = 20000;
	void *parameters[] = {&microseconds};

	EXPECT(3, cuDeviceGetCount(&count));
	EXPECT(1, cuInit(7));
	OK(cuInit(0));
	OK(cuInit(0));
	EXPECT(1, cuDeviceGetCount(NULL));
	OK(cuDeviceGetCount(&count));
	CUdevice device;
	EXPECT(101, cuDeviceGet(&device, count));
	EXPECT(201, cuMemAlloc(&memory, 64));
	OK(cuCtxGetCurrent(&none));
	EXPECT(1, none != NULL ? 0 : 1);
	EXPECT(1, cuCtxCreate(&context, 3, 0));
	EXPECT(101, cuCtxCreate(&context, 0, 99));
	OK(cuCtxCreate(&context, 0, 0));

	EXPECT(1, cuMemAlloc(&memory, 0));
	EXPECT(2, cuMemAlloc(&memory, (size_t)1 << 39));
	OK(cuMemAlloc(&memory, 4096));
	EXPECT(1, cuMemcpyHtoD(memory + 4090, bytes, sizeof bytes));
	EXPECT(1, cuMemcpyHtoD(0, bytes, sizeof bytes));
	EXPECT(1, cuMemcpyDtoH(bytes, 4096, sizeof bytes));
	OK(cuMemcpyHtoD(memory + 4032, bytes, sizeof bytes));
	OK(cuMemcpyHtoD(memory, bytes, 0));
	EXPECT(1, cuMemsetD32(memory + 2, 0, 1));
	EXPECT(1, cuMemFree(memory + 1));
	EXPECT(1, cuMemHostRegister(bytes, (size_t)-1, 0));
	OK(cuMemHostRegister(bytes + 16, 16, 0));
	EXPECT(712, cuMemHostRegister(bytes + 24, 16, 0));
	EXPECT(712, cuMemHostRegister(bytes + 8, 16, 0));
	EXPECT(712, cuMemHostRegister(bytes, sizeof bytes, 0));
	OK(cuMemHostRegister(bytes, 16, 0));
	OK(cuMemHostRegister(bytes + 32, 16, 0));
	for (int at = 0; at < 48; at += 16)
		OK(cuMemHostUnregister(bytes + at));

	EXPECT(1, cuStreamCreate(&stream, 2));
	EXPECT(400, cuStreamSynchronize((CUstream)bytes));
	EXPECT(400, cuStreamDestroy((CUstream)bytes));
	OK(cuStreamCreate(&stream, 1));
	EXPECT(1, cuEventCreate(&event, 64));
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&other, 2));
	EXPECT(400, cuEventElapsedTime(&time, event, event));
	OK(cuEventQuery(event));

	EXPECT(200, cuModuleLoadData(&module, "int main;"));
	OK(cuModuleLoadData(&module, PTX));
	EXPECT(500, cuModuleGetFunction(&timed, module, "missing"));
	OK(cuModuleGetFunction(&timed, module, "timed"));
	OK(cuModuleGetFunction(&nothing, module, "nothing"));
	OK(cuModuleGetFunction(&spin, module, "spin"));
	EXPECT(1, cuLaunchKernel(timed, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(timed, 1, 1, 1, 2048, 1, 1, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(timed, 1u << 31, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(timed, 1, 65536, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(timed, 1, 1, 65536, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(timed, 1, 1, 1, 1, 1, 65, 0, stream, NULL, NULL));
	OK(cuLaunchKernel(timed, 2147483647, 65535, 65535, 16, 1, 64, 0, stream, NULL, NULL));
	EXPECT(1, cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(801, cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(400, cuLaunchKernel((CUfunction)bytes, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuEventRecord(event, stream));
	OK(cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(600, cuStreamQuery(stream));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamQuery(stream));
	OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	OK(cuEventRecord(other, stream));
	EXPECT(600, cuEventQuery(other));
	OK(cuEventSynchronize(other));
	EXPECT(400, cuEventElapsedTime(&time, event, other));

	OK(cuLaunchHostFunc(stream, calls_the_driver, NULL));
	OK(cuStreamSynchronize(stream));
	EXPECT(800, inside);

	/* A wait inside of a capture ends it. */
	OK(cuStreamDestroy(stream));
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamBeginCapture(stream, 0));
	EXPECT(401, cuStreamBeginCapture(stream, 0));
	EXPECT(906, cuMemsetD32(memory, 0, 1));
	EXPECT(900, cuStreamSynchronize(stream));
	EXPECT(901, cuStreamEndCapture(stream, &graph));
	OK(cuMemsetD32(memory, 0, 1));
	EXPECT(900, cuStreamBeginCapture(NULL, 0));

	void *reference;
	EXPECT(801, cuTexRefCreate(&reference));
	EXPECT(801, cuTexRefCreate(&reference));

	OK(cuMemAllocManaged(&small, 4, 1));
	OK(cuMemsetD32(small, 7, 1));
	EXPECT(7, *(int *)small);

	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(cuDeviceGetCount(&count));
	int status;
	waitpid(child, &status, 0);
	EXPECT(3, WEXITSTATUS(status));

	OK(cuCtxDestroy(context));
	EXPECT(400, cuStreamDestroy(stream));
	EXPECT(201, cuCtxDestroy(context));
	puts("end");
	return 0;
}
