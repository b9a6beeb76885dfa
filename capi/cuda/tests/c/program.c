/* A program that knows nothing of Laxity: `program WHAT`. Prints what came out. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

static CUfunction affine, increment, spin;

static void start(void)
{
	CUcontext context;
	CUmodule module;

	open_driver();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, PTX));
	OK(cuModuleGetFunction(&affine, module, "affine"));
	OK(cuModuleGetFunction(&increment, module, "increment"));
	OK(cuModuleGetFunction(&spin, module, "spin"));
}

static void spin_for(uint32_t microseconds, CUstream stream)
{
	void *parameters[] = {&microseconds};

	OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Four jobs, announced before the stream that they use is there, each due ten seconds after it begins; work of no job between
 * them; then one that has no deadline. */
static void announce(void)
{
	void (*begin)(uint64_t) = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "laxity_program_begin_job");
	void (*end)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "laxity_program_end_job");
	CUstream stream = NULL;

	for (int job = 0; job < 5; job++) {
		begin(job < 4 ? now_ns() + 10000000000ull : 0);
		if (!stream)
			OK(cuStreamCreate(&stream, 1));
		spin_for(100, stream);
		OK(cuStreamSynchronize(stream));
		end();
		spin_for(100, stream);
		OK(cuStreamSynchronize(stream));
	}
	OK(cuStreamDestroy(stream));
}

static void add_one(CUdeviceptr counter, CUstream stream)
{
	void *parameters[] = {&counter};

	OK(cuLaunchKernel(increment, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

/* Copies in, computes, copies out, in a stream; a checksum. */
static uint64_t compute(uint32_t length, CUstream stream)
{
	float *values = malloc(length * sizeof *values), a = 2, b = 1;
	CUdeviceptr from, to;
	uint64_t sum = 1469598103934665603u;

	for (uint32_t at = 0; at < length; at++)
		values[at] = (float)at;
	OK(cuMemAlloc(&from, length * sizeof *values));
	OK(cuMemAlloc(&to, length * sizeof *values));
	OK(cuMemcpyHtoDAsync(from, values, length * sizeof *values, stream));
	for (int round = 0; round < 3; round++) {
		void *parameters[] = {&to, &from, &a, &b, &length};

		OK(cuLaunchKernel(affine, (length + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
		OK(cuMemcpyDtoDAsync(from, to, length * sizeof *values, stream));
	}
	OK(cuMemcpyDtoHAsync(values, to, length * sizeof *values, stream));
	OK(cuStreamSynchronize(stream));
	for (uint32_t at = 0; at < length; at++)
		sum = (sum ^ (uint64_t)(int64_t)values[at]) * 1099511628211u;
	OK(cuMemFree(from));
	OK(cuMemFree(to));
	free(values);
	return sum;
}

static void wait_for_flag(void *flag)
{
	while (!*(volatile int *)flag)
		usleep(100);
}

static CUcontext issuer_context;
static CUstream issuer_stream;
static volatile int issuer_flag, issuer_is_there;

/* Is held back behind a function of the host that waits for the main thread. */
static void *issue_behind(void *nothing)
{
	(void)nothing;
	OK(cuCtxSetCurrent(issuer_context));
	OK(cuLaunchHostFunc(issuer_stream, wait_for_flag, (void *)&issuer_flag));
	issuer_is_there = 1;
	spin_for(100, issuer_stream);
	return NULL;
}

/* An event that is complete is not waited for, whatever is issued behind it. */
static void past_event(void)
{
	CUevent event;
	pthread_t thread;

	OK(cuCtxGetCurrent(&issuer_context));
	OK(cuStreamCreate(&issuer_stream, 1));
	OK(cuEventCreate(&event, 0));
	spin_for(100, issuer_stream);
	OK(cuEventRecord(event, issuer_stream));
	pthread_create(&thread, NULL, issue_behind, NULL);
	while (!issuer_is_there)
		usleep(100);
	usleep(20000);
	OK(cuEventSynchronize(event));
	issuer_flag = 1;
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize(issuer_stream));
}

/* A copy that is not within its memory copies no byte. */
static void beyond(void)
{
	enum { BYTES = 1 << 20 };
	static unsigned char ones[2 * BYTES], read[BYTES];
	CUdeviceptr memory;
	size_t changed = 0;

	memset(ones, 1, sizeof ones);
	OK(cuMemAlloc(&memory, BYTES));
	OK(cuMemsetD32(memory, 0, BYTES / 4));
	int in = cuMemcpyHtoD(memory, ones, BYTES + 4096);
	int out = cuMemcpyDtoH(ones, memory, BYTES + 4096);
	OK(cuMemcpyDtoH(read, memory, BYTES));
	for (size_t at = 0; at < sizeof ones; at++)
		changed += (at < BYTES && read[at]) || !ones[at];
	printf("beyond %d %d %zu\n", in, out, changed);
	OK(cuMemFree(memory));
}

static void *poll_rounds(void *nothing)
{
	CUstream stream;

	(void)nothing;
	OK(cuCtxSetCurrent(issuer_context));
	OK(cuStreamCreate(&stream, 1));
	for (int round = 0; round < 200; round++) {
		spin_for(20, stream);
		spin_for(20, stream);
		if (round % 3 == 0)
			OK(cuStreamSynchronize(stream));
	}
	OK(cuStreamSynchronize(stream));
	return NULL;
}

/* Two threads with a stream each, whose jobs overlap. */
static void overlap(void)
{
	pthread_t threads[2];

	OK(cuCtxGetCurrent(&issuer_context));
	for (int at = 0; at < 2; at++)
		pthread_create(&threads[at], NULL, poll_rounds, NULL);
	for (int at = 0; at < 2; at++)
		pthread_join(threads[at], NULL);
}

static void note(void *data)
{
	volatile uint32_t *seen = data;

	seen[1] = seen[0];
}

/* Two streams, events, host functions, the shared stream, a graph. */
static void order(void)
{
	CUstream first, second, blocking;
	CUevent middle, end, begin;
	CUdeviceptr counter;
	CUgraph graph;
	CUgraphExec exec;
	float time;

	OK(cuStreamCreate(&first, 1));
	OK(cuStreamCreate(&second, 1));
	OK(cuStreamCreate(&blocking, 0));
	OK(cuEventCreate(&begin, 0));
	OK(cuEventCreate(&middle, 0));
	OK(cuEventCreate(&end, 2));
	OK(cuMemAllocManaged(&counter, 64, 1));
	uint32_t *seen = (uint32_t *)counter;
	OK(cuMemsetD32(counter, 0, 16));
	OK(cuEventRecord(begin, first));
	spin_for(5000, first);
	add_one(counter, first);
	OK(cuEventRecord(middle, first));
	OK(cuStreamWaitEvent(second, middle, 0));
	OK(cuLaunchHostFunc(second, note, seen));
	add_one(counter, second);
	OK(cuEventRecord(end, second));
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&time, begin, middle));
	printf("order %u %u %d\n", seen[0], seen[1], time >= 5);

	/* The shared stream waits for blocking ones, and they for it. */
	spin_for(5000, blocking);
	add_one(counter, blocking);
	OK(cuMemcpyDtoH(seen + 4, counter, 4));
	add_one(counter, NULL);
	add_one(counter, blocking);
	OK(cuStreamSynchronize(blocking));
	printf("shared %u %u\n", seen[4], seen[0]);

	OK(cuStreamBeginCapture(first, 0));
	for (int node = 0; node < 3; node++)
		add_one(counter, first);
	OK(cuEventRecord(middle, first));
	OK(cuStreamWaitEvent(second, middle, 0));
	add_one(counter, second);
	OK(cuEventRecord(end, second));
	OK(cuStreamWaitEvent(first, end, 0));
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 5; round++)
		OK(cuGraphLaunch(exec, first));
	while (cuStreamQuery(first) == 600)
		usleep(100);
	printf("graph %u\n", seen[0]);
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
	OK(cuStreamDestroy(blocking));
	OK(cuMemFree(counter));
}

static void rest(void *seconds)
{
	sleep(*(unsigned *)seconds);
}

/* A kernel of 20 ms in a stream of this thread's own; or in the shared stream, and a blocking one comes meanwhile: to be captured, or
 * to wait for the kernel, and then for another one and for something long. The program does not wait while a kernel runs. */
static void come_later(const char *what)
{
	CUstream blocking, own = (CUstream)2;
	unsigned none = 0, seconds = 1;
	CUgraph graph;

	OK(cuStreamCreate(&blocking, 0));
	spin_for(20000, strcmp(what, "own") ? NULL : own);
	if (!strcmp(what, "captured")) {
		OK(cuStreamBeginCapture(blocking, 0));
		usleep(5000);
		spin_for(1, blocking);
		OK(cuStreamEndCapture(blocking, &graph));
	}
	if (!strcmp(what, "behind")) {
		OK(cuLaunchHostFunc(blocking, rest, &none));
		spin_for(20000, NULL);
		OK(cuLaunchHostFunc(blocking, rest, &seconds));
	}
	usleep(30000);
	OK(cuCtxSynchronize());
	OK(cuStreamDestroy(blocking));
}

/* A kernel of 20 ms, and something long behind it or beside it, for which the program waits together with the kernel. */
static void wait_for_more(const char *what)
{
	CUstream streams[2], stream;
	unsigned seconds = 1;
	CUevent event;

	OK(cuStreamCreate(&streams[0], 1));
	OK(cuStreamCreate(&streams[1], 0));
	OK(cuEventCreate(&event, 2));
	stream = strcmp(what, "shared") ? streams[0] : NULL;
	spin_for(1000, stream);
	OK(cuStreamSynchronize(stream));
	spin_for(20000, stream);
	OK(cuLaunchHostFunc(strcmp(what, "stream") && strcmp(what, "event") ? streams[1] : stream, rest, &seconds));
	OK(cuEventRecord(event, stream));
	if (!strcmp(what, "context"))
		OK(cuCtxSynchronize());
	else if (!strcmp(what, "event"))
		OK(cuEventSynchronize(event));
	else
		OK(cuStreamSynchronize(stream));
	OK(cuStreamDestroy(streams[0]));
	OK(cuStreamDestroy(streams[1]));
}

static void *of_thread(void *length)
{
	CUcontext context;
	uint64_t *sum = length;

	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	*sum = compute((uint32_t)*sum, NULL);
	return NULL;
}

static volatile int go;

static void waits_for_the_program(void *data)
{
	(void)data;
	while (!go)
		usleep(100);
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "results";

	start();
	if (!strcmp(what, "results")) {
		printf("compute %lx %lx %lx\n", compute(1, NULL), compute(1000, NULL), compute(100000, NULL));
		order();
		CUcontext own;
		OK(cuCtxCreate(&own, 0, 0));
		void *pinned;
		CUdeviceptr memory;
		OK(cuMemHostAlloc(&pinned, 1 << 20, 0));
		OK(cuMemAlloc(&memory, 1 << 20));
		memset(pinned, 3, 1 << 20);
		OK(cuMemcpyHtoDAsync(memory, pinned, 1 << 20, NULL));
		OK(cuMemsetD8Async(memory, 4, 1000, NULL));
		OK(cuMemcpyDtoH(pinned, memory, 1 << 20));
		printf("own context %d %d\n", ((char *)pinned)[999], ((char *)pinned)[1000]);
		OK(cuCtxDestroy(own));
		EXPECT(1, cuLaunchKernel(spin, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	} else if (!strcmp(what, "bad_stream")) {
		EXPECT(400, cuStreamSynchronize((CUstream)arguments));
	} else if (!strcmp(what, "kernels")) {
		for (int round = 0; round < atoi(arguments[2]); round++) {
			spin_for((uint32_t)atoi(arguments[3]), NULL);
			compute(1000, NULL);
		}
	} else if (!strcmp(what, "threads")) {
		pthread_t threads[4];
		uint64_t sums[4] = {1000, 2000, 1000, 2000};
		for (int at = 0; at < 4; at++)
			pthread_create(&threads[at], NULL, of_thread, &sums[at]);
		for (int at = 0; at < 4; at++)
			pthread_join(threads[at], NULL);
		printf("threads %d %d\n", sums[0] == sums[2], sums[1] == sums[3]);
	} else if (!strcmp(what, "announces")) {
		announce();
	} else if (!strcmp(what, "past_event")) {
		past_event();
	} else if (!strcmp(what, "beyond")) {
		beyond();
	} else if (!strcmp(what, "come_later")) {
		come_later(arguments[2]);
	} else if (!strcmp(what, "wait_for_more")) {
		wait_for_more(arguments[2]);
	} else if (!strcmp(what, "overlap")) {
		overlap();
	} else if (!strcmp(what, "flags")) {
		unsigned flags;
		CUcontext own;
		OK(cuCtxGetFlags(&flags));
		printf("flags %u", flags & 7);
		OK(cuCtxCreate(&own, 1, 0));
		OK(cuCtxGetFlags(&flags));
		printf(" %u\n", flags & 7);
	} else if (!strcmp(what, "needs_its_thread")) {
		CUstream stream;
		OK(cuStreamCreate(&stream, 1));
		OK(cuLaunchHostFunc(stream, waits_for_the_program, NULL));
		spin_for(10, stream);
		go = 1;
		OK(cuStreamSynchronize(stream));
	} else if (!strcmp(what, "loops")) {
		say("begun");
		for (;;) {
			spin_for(2000, NULL);
			compute(1000, NULL);
		}
	} else if (!strcmp(what, "forks")) {
		spin_for(20000, NULL);
		pid_t child = fork();
		if (child == 0) {
			int devices;
			printf("child %d\n", cuDeviceGetCount(&devices));
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		OK(cuCtxSynchronize());
	} else {
		spin_for(50000, NULL);
		if (!strcmp(what, "exits"))
			exit(0);
		if (!strcmp(what, "ends_at_once"))
			_exit(0);
		if (!strcmp(what, "crashes"))
			abort();
		if (!strcmp(what, "is_killed"))
			kill(getpid(), SIGKILL);
	}
	say("end");
	return 0;
}
