/*
 * What the tests' programs need of CUDA's driver interface, declared here as there are no headers of CUDA's, and three ways
 * to reach it: LINKED to libcuda.so.1, by dlsym (BY_DLSYM), or by cuGetProcAddress, as CUDA's static runtime does it.
 */
#ifndef DRIVER_H
#define DRIVER_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUmodule, *CUfunction, *CUgraph, *CUgraphExec;

enum { HOST = 1, DEVICE = 2, UNIFIED = 4 };

/* CUDA_MEMCPY2D */
struct copy_2d {
	size_t from_x, from_y;
	unsigned from_kind;
	const void *from_host;
	CUdeviceptr from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	unsigned to_kind;
	void *to_host;
	CUdeviceptr to_device;
	void *to_array;
	size_t to_pitch;
	size_t width, height;
};

/* An end of CUDA_MEMCPY3D */
struct end_3d {
	size_t x, y, z, level;
	unsigned kind;
	void *host;
	CUdeviceptr device;
	void *array, *context;
	size_t pitch, height;
};

/* CUDA_MEMCPY3D */
struct copy_3d {
	struct end_3d from, to;
	size_t width, height, depth;
};

/* name, symbol, version, parameters */
#define FUNCTIONS(F) \
	F(cuInit, cuInit, 2000, (unsigned flags)) \
	F(cuDeviceGet, cuDeviceGet, 2000, (CUdevice *device, int ordinal)) \
	F(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count)) \
	F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *context, CUdevice device)) \
	F(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, (CUdevice device, unsigned *flags, int *active)) \
	F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device)) \
	F(cuCtxCreate, cuCtxCreate_v2, 3020, (CUcontext *context, unsigned flags, CUdevice device)) \
	F(cuCtxDestroy, cuCtxDestroy_v2, 4000, (CUcontext context)) \
	F(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext context)) \
	F(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context)) \
	F(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext *context)) \
	F(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext *context)) \
	F(cuCtxGetFlags, cuCtxGetFlags, 7000, (unsigned *flags)) \
	F(cuCtxSynchronize, cuCtxSynchronize, 2000, (void)) \
	F(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr *address, size_t bytes)) \
	F(cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr *address, size_t bytes, unsigned flags)) \
	F(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **address, size_t bytes, unsigned flags)) \
	F(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void *address, size_t bytes, unsigned flags)) \
	F(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *address)) \
	F(cuMemFreeHost, cuMemFreeHost, 2000, (void *address)) \
	F(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr address)) \
	F(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (CUdeviceptr to, const void *from, size_t bytes)) \
	F(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void *to, CUdeviceptr from, size_t bytes)) \
	F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	F(cuMemsetD32, cuMemsetD32_v2, 3020, (CUdeviceptr to, unsigned value, size_t count)) \
	F(cuMemsetD8Async, cuMemsetD8Async, 3020, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) \
	F(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)) \
	F(cuMemcpy2D, cuMemcpy2D_v2, 3020, (const struct copy_2d *copy)) \
	F(cuMemcpy3D, cuMemcpy3D_v2, 3020, (const struct copy_3d *copy)) \
	F(cuStreamCreate, cuStreamCreate, 2000, (CUstream *stream, unsigned flags)) \
	F(cuStreamDestroy, cuStreamDestroy_v2, 4000, (CUstream stream)) \
	F(cuStreamQuery, cuStreamQuery, 2000, (CUstream stream)) \
	F(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream)) \
	F(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags)) \
	F(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010, (CUstream stream, int mode)) \
	F(cuStreamEndCapture, cuStreamEndCapture, 10000, (CUstream stream, CUgraph *graph)) \
	F(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (CUstream stream, int *status)) \
	F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode)) \
	F(cuGraphInstantiate, cuGraphInstantiateWithFlags, 11040, (CUgraphExec *exec, CUgraph graph, unsigned long long flags)) \
	F(cuGraphLaunch, cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream)) \
	F(cuEventCreate, cuEventCreate, 2000, (CUevent *event, unsigned flags)) \
	F(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event)) \
	F(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream)) \
	F(cuEventQuery, cuEventQuery, 2000, (CUevent event)) \
	F(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event)) \
	F(cuEventElapsedTime, cuEventElapsedTime, 2000, (float *milliseconds, CUevent from, CUevent to)) \
	F(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (CUstream stream, void (*function)(void *), void *data)) \
	F(cuModuleLoadData, cuModuleLoadData, 2000, (CUmodule *module, const void *image)) \
	F(cuModuleGetFunction, cuModuleGetFunction, 2000, (CUfunction *function, CUmodule module, const char *name)) \
	F(cuLibraryLoadData, cuLibraryLoadData, 12000, (void **library, const void *code, int *options, void **values, \
		unsigned count, int *library_options, void **library_values, unsigned library_count)) \
	F(cuLibraryGetKernel, cuLibraryGetKernel, 12000, (CUfunction *kernel, void *library, const char *name)) \
	F(cuLaunchKernel, cuLaunchKernel, 4000, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
		unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)) \
	F(cuTexRefCreate, cuTexRefCreate, 2000, (void **reference))

#ifdef LINKED
#define DECLARE(name, symbol, version, parameters) extern CUresult symbol parameters;
FUNCTIONS(DECLARE)
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuCtxCreate cuCtxCreate_v2
#define cuCtxDestroy cuCtxDestroy_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define cuMemsetD32 cuMemsetD32_v2
#define cuMemsetD2D8 cuMemsetD2D8_v2
#define cuMemcpy2D cuMemcpy2D_v2
#define cuMemcpy3D cuMemcpy3D_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuGraphInstantiate cuGraphInstantiateWithFlags
#define cuEventDestroy cuEventDestroy_v2
static inline void open_driver(void) {}
#else
#define DECLARE(name, symbol, version, parameters) static CUresult(*name) parameters;
FUNCTIONS(DECLARE)
static inline void *found(void *address, const char *name)
{
	if (!address) {
		fprintf(stderr, "no %s\n", name);
		exit(3);
	}
	return address;
}

static inline void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
#ifdef BY_DLSYM
#define FIND(name, symbol, version, parameters) name = found(dlsym(library, #symbol), #symbol);
#else
	CUresult (*address)(const char *, void **, int, uint64_t, int *);
	address = found(dlsym(library, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
#define FIND(name, symbol, version, parameters) \
	do { \
		void *function = NULL; \
		const char *base = strstr(#symbol, "WithFlags") ? #symbol : #name; \
		/* Default streams of threads are from CUDA 7 on. */ \
		address(base, &function, DEFAULT_STREAM == 2 && version < 7000 ? 7000 : version, DEFAULT_STREAM, NULL); \
		name = found(function, base); \
	} while (0);
#ifndef DEFAULT_STREAM
#define DEFAULT_STREAM 1
#endif
#endif
	FUNCTIONS(FIND)
}
#endif

/* The call must succeed. */
#define OK(call) \
	do { \
		CUresult result = call; \
		if (result) { \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, result); \
			exit(2); \
		} \
	} while (0)

/* It must answer so. */
#define EXPECT(wanted, call) \
	do { \
		CUresult result = call; \
		if (result != (wanted)) { \
			fprintf(stderr, "%s:%d: %s: %d, not %d\n", __FILE__, __LINE__, #call, result, wanted); \
			exit(2); \
		} \
	} while (0)

/* The text of kernels.ptx, whose place the compiler is told of. */
__asm__(".pushsection .rodata\n"
	"ptx_of_the_tests: .incbin \"" KERNELS_PTX "\"\n"
	".byte 0\n"
	".popsection");
extern const char PTX[] __asm__("ptx_of_the_tests");

#endif
