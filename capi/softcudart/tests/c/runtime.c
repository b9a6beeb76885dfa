/*
 * What the vendor's compiler makes of a program with <<<...>>>, written by hand: for machines without that compiler. Prints
 * what came out, in a fixed form.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
	unsigned int x, y, z;
};

struct wrapper {
	int magic, version;
	const void *data;
	void *file;
};

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int threads, void *tid,
			    void *bid, void *block, void *grid, int *warp);
unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream);
int __cudaGetKernel(void **kernel, const void *host);
int __cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared, void *stream);
int cudaLaunchKernel(const void *host, struct dim3 grid, struct dim3 block, void **arguments, size_t shared, void *stream);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemset(void *address, int value, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamCreate(void **stream);
int cudaStreamSynchronize(void *stream);
int cudaStreamDestroy(void *stream);
int cudaFuncGetName(const char **name, const void *host);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int error);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);

#define OK(call)                                                                                                       \
	do {                                                                                                           \
		int error_ = (call);                                                                                   \
		if (error_) {                                                                                          \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error_));                                  \
			exit(3);                                                                                       \
		}                                                                                                      \
	} while (0)

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".visible .entry affine(.param .u64 a, .param .u64 b, .param .f32 c, .param .f32 d, .param .u32 e) { ret; }\n"
			  ".visible .entry increment(.param .u64 a) { ret; }\n"
			  ".visible .entry nothing() { ret; }\n";
static struct wrapper wrapper = {0x466243b1, 1, ptx, NULL};
static void **binary;

/* The host functions that stand for kernels: each launches its own. */
static void increment(void *counter)
{
	void *arguments[] = {&counter}, *stream, *kernel;
	struct dim3 grid, block;
	size_t shared;

	OK(__cudaGetKernel(&kernel, (const void *)increment));
	OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	OK(__cudaLaunchKernel(kernel, grid, block, arguments, shared, stream));
}

static void affine(float *out, const float *in, float a, float b, unsigned int length)
{
	void *arguments[] = {&out, &in, &a, &b, &length}, *stream;
	struct dim3 grid, block;
	size_t shared;

	OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	OK(cudaLaunchKernel((const void *)affine, grid, block, arguments, shared, stream));
}

static void nothing(void)
{
}

static void configure(unsigned int grid, unsigned int block, void *stream)
{
	struct dim3 blocks = {grid, 1, 1}, threads = {block, 1, 1};

	if (__cudaPushCallConfiguration(blocks, threads, 0, stream))
		exit(4);
}

__attribute__((constructor)) static void begin(void)
{
	binary = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(binary, (const char *)affine, "affine", "affine", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(binary, (const char *)increment, "increment", "increment", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(binary, (const char *)nothing, "nothing", "nothing", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(binary);
}

__attribute__((destructor)) static void end(void)
{
	__cudaUnregisterFatBinary(binary);
}

static void *fails(void *unused)
{
	(void)unused;
	cudaFree((void *)1);
	return NULL;
}

int main(void)
{
	enum { LENGTH = 1000 };
	static float source[LENGTH], target[LENGTH];
	struct dim3 one = {1, 1, 1}, many = {2048, 1, 1};
	unsigned int value = 0;
	const char *name;
	pthread_t thread;
	float *a, *b;
	void *counter, *stream;

	for (int at = 0; at < LENGTH; at++)
		source[at] = at;
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc((void **)&a, sizeof source));
	OK(cudaMalloc((void **)&b, sizeof source));
	OK(cudaMalloc(&counter, 4));
	OK(cudaMemset(counter, 0, 4));
	OK(cudaMemcpyAsync(a, source, sizeof source, 1, stream));
	configure(4, 256, stream);
	affine(b, a, 2, 1, LENGTH);
	OK(cudaMemcpyAsync(target, b, sizeof target, 2, stream));
	OK(cudaStreamSynchronize(stream));
	for (int at = 0; at < LENGTH; at++)
		if (target[at] != 2 * source[at] + 1)
			return 5;
	for (int round = 0; round < 10; round++) {
		configure(1, 1, NULL);
		increment(counter);
	}
	OK(cudaMemcpy(&value, counter, 4, 2));
	OK(cudaFuncGetName(&name, (const void *)affine));
	printf("compute %s %u\n", name, value);
	/* Errors are those of the thread. A kernel that nothing stands for is refused. */
	pthread_create(&thread, NULL, fails, NULL);
	pthread_join(thread, NULL);
	int before = cudaPeekAtLastError();
	int unknown = cudaLaunchKernel("no host function", one, one, NULL, 0, NULL);
	int large = cudaLaunchKernel((const void *)increment, one, many, (void *[]){&counter}, 0, NULL);
	int symbol = cudaMemcpyToSymbol(&value, &value, 4, 0, 1);
	int again = cudaMemcpyToSymbol(&value, &value, 4, 0, 1);
	int none = cudaLaunchKernel((const void *)nothing, one, one, NULL, 0, NULL);
	printf("errors %d %s %s %s %d", before, cudaGetErrorName(unknown), cudaGetErrorName(large), cudaGetErrorName(symbol),
	       again == symbol);
	int last = cudaGetLastError(), forgotten = cudaGetLastError();
	printf(" %s %d %d\n", cudaGetErrorName(none), last == none, forgotten);
	OK(cudaFree(a));
	OK(cudaFree(b));
	OK(cudaFree(counter));
	OK(cudaStreamDestroy(stream));
	puts("end");
	return 0;
}
