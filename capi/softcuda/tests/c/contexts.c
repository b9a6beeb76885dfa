/* A thread has a context that another thread destroys, and then makes new ones. */
#include "start.h"

static CUcontext destroyed;
static pthread_barrier_t both;

static void *with_it(void *data)
{
	CUcontext current;
	CUdeviceptr memory;

	OK(cuCtxSetCurrent(destroyed));
	OK(cuMemAlloc(&memory, 64));
	pthread_barrier_wait(&both);
	/* It is destroyed, and others are made. */
	pthread_barrier_wait(&both);
	EXPECT(709, cuMemAlloc(&memory, 64));
	EXPECT(709, cuCtxSynchronize());
	OK(cuCtxGetCurrent(&current));
	EXPECT(1, current == destroyed);
	EXPECT(201, cuCtxSetCurrent(destroyed));
	return data;
}

/* Without a context in its place, the one below is current: cuCtxSetCurrent(NULL) pops. */
static void expect_stack(void)
{
	CUcontext second, current;

	OK(cuCtxCreate(&second, 0, 0));
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&current));
	EXPECT(1, current == context);
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&current));
	EXPECT(1, current == NULL);
	EXPECT(201, cuCtxPopCurrent(&current));
	OK(cuCtxPushCurrent(second));
	OK(cuCtxPopCurrent(&current));
	EXPECT(1, current == second);
	EXPECT(201, cuCtxPopCurrent(&current));
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(context));
}

/* A kernel that is of no context is launched in the current one alone. */
static void expect_own_streams(void)
{
	CUcontext second;
	CUstream stream;
	CUfunction timed;
	void *library;

	OK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&timed, library, "timed"));
	OK(cuCtxCreate(&second, 0, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	EXPECT(400, cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuCtxPopCurrent(NULL));
	EXPECT(400, cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cuCtxDestroy(second));
}

int main(void)
{
	pthread_t thread;

	start();
	expect_stack();
	expect_own_streams();
	pthread_barrier_init(&both, NULL, 2);
	OK(cuCtxCreate(&destroyed, 0, 0));
	thread = spawn(with_it, NULL);
	pthread_barrier_wait(&both);
	OK(cuCtxDestroy(destroyed));
	for (int count = 0; count < 200; count++) {
		CUcontext other;

		OK(cuCtxCreate(&other, 0, 0));
		EXPECT(0, other == destroyed);
		/* Those of the last rounds stay. */
		if (count < 100)
			OK(cuCtxDestroy(other));
	}
	pthread_barrier_wait(&both);
	join(thread);
	puts("end");
	return 0;
}
