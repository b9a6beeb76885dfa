/* A library that a program loads and unloads: it copies, and does not wait. */
#include "driver.h"

enum { BYTES = 8 << 20 };

/* Copies in, then out again; answers where the bytes arrive. */
unsigned char *begin(void)
{
	CUcontext context;
	CUstream stream;
	CUdeviceptr memory;
	unsigned char *from, *to;

	open_driver();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	OK(cuMemHostAlloc((void **)&from, BYTES, 0));
	OK(cuMemHostAlloc((void **)&to, BYTES, 0));
	OK(cuMemAlloc(&memory, BYTES));
	memset(from, 7, BYTES);
	memset(to, 0, BYTES);
	for (int copy = 0; copy < COPIES; copy++)
		OK(cuMemcpyHtoDAsync(memory, from, BYTES, stream));
	OK(cuMemcpyDtoHAsync(to, memory, BYTES, stream));
	return to + BYTES - 1;
}
