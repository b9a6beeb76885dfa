/* A stream that waits for another again and again goes on each time. */
#include "start.h"

static void pause_shortly(unsigned *seed)
{
	/* About as long as a kernel takes: the wait is over before, while, or after the next command is issued. */
	for (volatile unsigned left = rand_r(seed) % 40000; left > 0; left--)
		;
}

int main(void)
{
	CUstream first, second;
	CUevent event;
	CUdeviceptr counters;
	unsigned seed = 1;

	start();
	OK(cuStreamCreate(&first, 1));
	OK(cuStreamCreate(&second, 1));
	OK(cuEventCreate(&event, 2));
	counters = zeros(2);
	for (int round = 0; round < 4000; round++) {
		for (int half = 0; half < 2; half++) {
			launch_increment(first, counters);
			OK(cuEventRecord(event, first));
			OK(cuStreamWaitEvent(second, event, 0));
			if (half == 0)
				pause_shortly(&seed);
			launch_increment(second, counters + 4);
		}
		OK(cuStreamSynchronize(second));
	}
	puts("end");
	return 0;
}
