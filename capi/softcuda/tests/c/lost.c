/* The soft GPU is lost while streams wait for a kernel, for each other and for host functions: none waits for ever. */
#include "start.h"

static void nothing(void *data)
{
	(void)data;
}

int main(void)
{
	CUstream first, second;
	CUevent event;
	CUmodule module;
	CUfunction timed;
	CUdeviceptr counter;

	start();
	counter = zeros(1);
	OK(cuModuleLoadData(&module, PTX));
	OK(cuModuleGetFunction(&timed, module, "timed"));
	OK(cuStreamCreate(&first, 1));
	OK(cuStreamCreate(&second, 1));
	OK(cuEventCreate(&event, 0));
	OK(cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, first, NULL, NULL));
	OK(cuEventRecord(event, first));
	OK(cuStreamWaitEvent(second, event, 0));
	launch_increment(second, counter);
	OK(cuLaunchHostFunc(second, nothing, NULL));
	OK(cuLaunchHostFunc(first, nothing, NULL));
	launch_increment(first, counter);
	puts("issued");
	fflush(stdout);
	/* It is lost. */
	getchar();
	printf("second %d\n", cuStreamSynchronize(second));
	printf("first %d\n", cuStreamSynchronize(first));
	printf("all %d\n", cuCtxSynchronize());
	printf("event %d\n", cuEventQuery(event));
	return 0;
}
