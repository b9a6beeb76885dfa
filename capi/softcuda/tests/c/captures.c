/*
 * Captures that end in other ways than by cuStreamEndCapture, and the calls that threads may make meanwhile: those of CUDA's
 * documentation of cuThreadExchangeStreamCaptureMode.
 */
#include "start.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static CUdeviceptr counter;

/* Memory can be allocated and freed, or neither. */
static void expect_memory(CUresult wanted, CUdeviceptr old)
{
	CUdeviceptr memory;

	EXPECT(wanted, cuMemAlloc(&memory, 64));
	EXPECT(wanted, cuMemFree(old));
	/* It is freed, or it is not. */
	EXPECT(wanted ? 0 : 1, cuMemsetD8Async(old, 0, 64, NULL));
}

struct other {
	CUresult wanted;
	CUdeviceptr old;
	int mode;
};

static void *other_thread(void *data)
{
	struct other *other = data;

	OK(cuCtxSetCurrent(context));
	OK(cuThreadExchangeStreamCaptureMode(&other->mode));
	expect_memory(other->wanted, other->old);
	return NULL;
}

static void in_other_thread(CUresult wanted, CUdeviceptr old, int mode)
{
	struct other other = {wanted, old, mode};

	join(spawn(other_thread, &other));
}

int main(void)
{
	CUstream stream, side;
	CUevent event;
	CUgraph graph;
	int status, mode = RELAXED;

	start();
	counter = zeros(1);
	OK(cuEventCreate(&event, 2));
	OK(cuStreamCreate(&side, 0));

	/* A stream is destroyed that began a capture, which another one has joined. */
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamBeginCapture(stream, GLOBAL));
	launch_increment(stream, counter);
	OK(cuEventRecord(event, stream));
	OK(cuStreamWaitEvent(side, event, 0));
	OK(cuStreamDestroy(stream));
	OK(cuStreamIsCapturing(side, &status));
	EXPECT(0, status);
	launch_increment(NULL, counter);
	OK(cuStreamSynchronize(NULL));
	OK(cuCtxSynchronize());

	/* An event of a capture that has ended. */
	OK(cuStreamCreate(&stream, 1));
	OK(cuStreamBeginCapture(stream, RELAXED));
	launch_increment(stream, counter);
	OK(cuEventRecord(event, stream));
	OK(cuStreamEndCapture(stream, &graph));
	EXPECT(907, cuStreamWaitEvent(side, event, 0));
	OK(cuStreamIsCapturing(side, &status));
	EXPECT(0, status);
	launch_increment(side, counter);
	OK(cuStreamSynchronize(side));
	OK(cuCtxSynchronize());

	/* A relaxed capture forbids no thread anything. */
	OK(cuStreamBeginCapture(stream, RELAXED));
	expect_memory(0, zeros(16));
	in_other_thread(0, zeros(16), GLOBAL);
	OK(cuStreamEndCapture(stream, &graph));

	/* That of a thread, this thread alone. */
	CUdeviceptr own = zeros(16), others = zeros(16);
	OK(cuStreamBeginCapture(stream, THREAD_LOCAL));
	in_other_thread(0, others, GLOBAL);
	OK(cuStreamIsCapturing(stream, &status));
	EXPECT(1, status);
	expect_memory(900, own);
	EXPECT(901, cuStreamEndCapture(stream, &graph));

	/* A global one, all threads but those in another mode. */
	others = zeros(16);
	OK(cuStreamBeginCapture(stream, GLOBAL));
	in_other_thread(0, others, THREAD_LOCAL);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(GLOBAL, mode);
	expect_memory(0, own);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	EXPECT(RELAXED, mode);
	OK(cuStreamEndCapture(stream, &graph));
	own = zeros(16);
	OK(cuStreamBeginCapture(stream, GLOBAL));
	in_other_thread(900, own, GLOBAL);
	EXPECT(901, cuStreamEndCapture(stream, &graph));

	/* The shared stream would have to wait for the captured one. */
	CUstream blocking;
	OK(cuStreamCreate(&blocking, 0));
	OK(cuStreamBeginCapture(blocking, THREAD_LOCAL));
	EXPECT(906, cuMemsetD8Async(counter, 0, 4, NULL));
	EXPECT(901, cuStreamEndCapture(blocking, &graph));

	/* A context is destroyed while a stream of it is captured. */
	CUcontext second;
	OK(cuCtxCreate(&second, 0, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamBeginCapture(stream, GLOBAL));
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(context));
	expect_memory(0, own);
	OK(cuCtxSynchronize());
	puts("end");
	return 0;
}
