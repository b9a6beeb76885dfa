/* Threads that use their own streams and end, half of them before their work is complete. */
#include "start.h"

enum { THREADS = 600 };

static CUdeviceptr counter;

static void *launch(void *waits)
{
	CUstream own = (CUstream)2;

	OK(cuCtxSetCurrent(context));
	launch_increment(own, counter);
	if (waits)
		OK(cuStreamSynchronize(own));
	return NULL;
}

int main(void)
{
	unsigned launches;

	start();
	counter = zeros(1);
	for (intptr_t thread = 0; thread < THREADS; thread++)
		join(spawn(launch, (void *)(thread % 2)));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&launches, counter, sizeof launches));
	printf("launches %u\n", launches);
	/* One more, so that streams are forgotten whose work was not complete when their threads ended. */
	join(spawn(launch, NULL));
	fflush(stdout);
	getchar();
	return 0;
}
