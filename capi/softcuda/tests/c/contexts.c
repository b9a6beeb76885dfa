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

int main(void)
{
	pthread_t thread;

	start();
	expect_stack();
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
