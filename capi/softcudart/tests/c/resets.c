/* A thread uses device 0. Another one resets that device, and then uses device 1. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* cudaPointerAttributes */
struct attributes {
	int kind, device;
	void *of_device, *of_host;
	long reserved[8];
};

int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemset(void *address, int value, size_t bytes);
int cudaPointerGetAttributes(struct attributes *attributes, const void *address);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);

#define EXPECT(wanted, value)                                                                                          \
	do {                                                                                                           \
		int value_ = (value);                                                                                  \
		if (value_ != (wanted)) {                                                                              \
			fprintf(stderr, "%d: %s: %d, not %d\n", __LINE__, #value, value_, wanted);                     \
			exit(2);                                                                                       \
		}                                                                                                      \
	} while (0)

#define OK(call) EXPECT(0, call)

static pthread_barrier_t both;

static void expect_memory_of(int device)
{
	struct attributes attributes;
	void *memory;
	int current;

	OK(cudaGetDevice(&current));
	EXPECT(device, current);
	OK(cudaMalloc(&memory, 64));
	OK(cudaPointerGetAttributes(&attributes, memory));
	EXPECT(device, attributes.device);
	OK(cudaMemset(memory, 0, 64));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(memory));
}

static void *on_0(void *data)
{
	OK(cudaSetDevice(0));
	for (int round = 0; round < 20; round++) {
		expect_memory_of(0);
		pthread_barrier_wait(&both);
		/* The device is reset. */
		pthread_barrier_wait(&both);
	}
	expect_memory_of(0);
	return data;
}

int main(void)
{
	pthread_t thread;

	alarm(120);
	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&thread, NULL, on_0, NULL))
		exit(4);
	for (int round = 0; round < 20; round++) {
		pthread_barrier_wait(&both);
		OK(cudaSetDevice(0));
		OK(cudaDeviceReset());
		OK(cudaSetDevice(1));
		expect_memory_of(1);
		OK(cudaDeviceReset());
		pthread_barrier_wait(&both);
	}
	pthread_join(thread, NULL);
	puts("end");
	return 0;
}
