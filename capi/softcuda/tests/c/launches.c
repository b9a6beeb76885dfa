/* Two threads launch graphs into one stream: each launch is carried out whole. */
#include "start.h"

enum { LAUNCHES = 200, NODES = 20 };

static CUstream stream;
static CUgraphExec graphs[2];
static pthread_barrier_t both;
static int seen[2 * LAUNCHES * NODES], count;

/* All on the driver's thread. */
static void note(void *number)
{
	seen[count++] = (int)(intptr_t)number;
}

static void *launch_all(void *graph)
{
	OK(cuCtxSetCurrent(context));
	pthread_barrier_wait(&both);
	for (int launch = 0; launch < LAUNCHES; launch++)
		OK(cuGraphLaunch(*(CUgraphExec *)graph, stream));
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	int torn = 0;

	start();
	OK(cuStreamCreate(&stream, 1));
	for (int graph = 0; graph < 2; graph++) {
		CUgraph captured;

		OK(cuStreamBeginCapture(stream, 2));
		for (int node = 0; node < NODES; node++)
			OK(cuLaunchHostFunc(stream, note, (void *)(intptr_t)(graph * NODES + node)));
		OK(cuStreamEndCapture(stream, &captured));
		OK(cuGraphInstantiate(&graphs[graph], captured, 0));
	}
	pthread_barrier_init(&both, NULL, 2);
	for (int graph = 0; graph < 2; graph++)
		threads[graph] = spawn(launch_all, &graphs[graph]);
	join(threads[0]);
	join(threads[1]);
	OK(cuStreamSynchronize(stream));
	for (int at = 0; at < count; at++)
		torn += at % NODES == 0 ? seen[at] % NODES != 0 : seen[at] != seen[at - 1] + 1;
	printf("nodes %d, out of order %d\n", count, torn);
	return 0;
}
