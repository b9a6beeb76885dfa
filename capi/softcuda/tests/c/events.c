/* Where a stream is complete, so are the events that were recorded in it, and they have times in their order. */
#include "start.h"

enum { ROUNDS = 2000 };

int main(void)
{
	CUstream stream;
	CUevent before, after;
	CUdeviceptr counter;
	int not_ready[4] = {0}, wrong_times = 0;

	start();
	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&before, 0));
	OK(cuEventCreate(&after, 0));
	counter = zeros(1);
	for (int round = 0; round < 4 * ROUNDS; round++) {
		float time = -1;
		int way = round % 4;

		OK(cuEventRecord(before, stream));
		launch_increment(stream, counter);
		OK(cuEventRecord(after, stream));
		if (way == 0)
			OK(cuStreamSynchronize(stream));
		else if (way == 1)
			OK(cuCtxSynchronize());
		else if (way == 2)
			while (cuStreamQuery(stream))
				;
		else
			OK(cuEventSynchronize(after));
		not_ready[way] += cuEventQuery(before) || cuEventQuery(after) || cuEventElapsedTime(&time, before, after);
		/* An event recorded in a complete stream is passed at once, and not before events recorded earlier. */
		OK(cuEventRecord(before, stream));
		OK(cuEventQuery(before));
		OK(cuEventElapsedTime(&time, after, before));
		wrong_times += time < 0;
	}
	printf("not ready %d %d %d %d\n", not_ready[0], not_ready[1], not_ready[2], not_ready[3]);
	printf("wrong times %d\n", wrong_times);
	return 0;
}
