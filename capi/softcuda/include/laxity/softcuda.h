/*
 * Kernels of the soft CUDA driver: functions of the host in the place of GPU kernels.
 *
 * A shared library, which LAXITY_SOFTCUDA_KERNELS names, exports a table `laxity_soft_kernels`. A kernel of a module that
 * has the name of an entry runs as its function: once for a launch, on the process's thread for the execution engine.
 * Device addresses are addresses of the process.
 *
 *     static void scale(const struct laxity_soft_launch *launch) {
 *         float *values = *(float **)launch->parameters[0];
 *         ...
 *     }
 *     static const uint32_t scale_sizes[] = {sizeof(float *), sizeof(float)};
 *     const struct laxity_soft_kernel laxity_soft_kernels[] = {{"scale", scale, 2, scale_sizes}, {0}};
 */
#ifndef LAXITY_SOFTCUDA_H
#define LAXITY_SOFTCUDA_H

#include <stdint.h>

/* A launch. Valid until the kernel returns. */
struct laxity_soft_launch {
	uint32_t grid[3];   /* thread blocks */
	uint32_t block[3];  /* threads of each */
	uint32_t shared_bytes;
	uint32_t count;     /* of parameters */
	void *const *parameters; /* where each of them is */
};

/* A kernel. The table ends with an entry whose name is NULL. */
struct laxity_soft_kernel {
	const char *name;
	void (*run)(const struct laxity_soft_launch *launch);
	uint32_t count;        /* of parameters */
	const uint32_t *sizes; /* of each, in bytes */
};

#endif
