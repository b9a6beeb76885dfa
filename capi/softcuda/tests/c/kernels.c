/* Kernels of the tests: what a GPU would compute, as functions of the host. */
#include "laxity/softcuda.h"

#include <stddef.h>
#include <time.h>

/* out[i] = a * in[i] + b, for all threads of the grid, up to a length. */
static void affine(const struct laxity_soft_launch *launch)
{
	float *out = *(float **)launch->parameters[0];
	const float *in = *(const float **)launch->parameters[1];
	float a = *(float *)launch->parameters[2], b = *(float *)launch->parameters[3];
	uint32_t length = *(uint32_t *)launch->parameters[4];
	uint32_t threads = launch->grid[0] * launch->block[0];

	for (uint32_t at = 0; at < threads && at < length; at++)
		out[at] = a * in[at] + b;
}

static const uint32_t affine_sizes[] = {8, 8, 4, 4, 4};

/* Adds 1 to a counter. */
static void increment(const struct laxity_soft_launch *launch)
{
	++**(uint32_t **)launch->parameters[0];
}

static const uint32_t increment_sizes[] = {8};

/* Occupies the engine for so many microseconds. */
static void spin(const struct laxity_soft_launch *launch)
{
	uint32_t microseconds = *(uint32_t *)launch->parameters[0];
	struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};

	nanosleep(&time, NULL);
}

static const uint32_t spin_sizes[] = {4};

const struct laxity_soft_kernel laxity_soft_kernels[] = {
	{"affine", affine, 5, affine_sizes},
	{"increment", increment, 1, increment_sizes},
	{"spin", spin, 1, spin_sizes},
	{NULL, NULL, 0, NULL},
};
