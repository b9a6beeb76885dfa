/* The kernels of program.cu, as functions of the host: by the names that the compiler gives them. */
#include "laxity/softcuda.h"

#include <stddef.h>
#include <time.h>

static uint32_t threads(const struct laxity_soft_launch *launch)
{
	return launch->grid[0] * launch->block[0];
}

static void affine(const struct laxity_soft_launch *launch)
{
	float *out = *(float **)launch->parameters[0];
	const float *in = *(const float **)launch->parameters[1];
	float a = *(float *)launch->parameters[2], b = *(float *)launch->parameters[3];
	uint32_t length = *(uint32_t *)launch->parameters[4];

	for (uint32_t at = 0; at < threads(launch) && at < length; at++)
		out[at] = a * in[at] + b;
}

static const uint32_t affine_sizes[] = {8, 8, 4, 4, 4};

static void increment(const struct laxity_soft_launch *launch)
{
	**(uint32_t **)launch->parameters[0] += threads(launch);
}

static const uint32_t increment_sizes[] = {8};

static void spin(const struct laxity_soft_launch *launch)
{
	uint32_t microseconds = *(uint32_t *)launch->parameters[0];
	struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};

	nanosleep(&time, NULL);
	**(uint32_t **)launch->parameters[1] = microseconds;
}

static const uint32_t spin_sizes[] = {4, 8};

struct matrix {
	float rows[3][3];
	unsigned char tag;
};

static void multiply(const struct laxity_soft_launch *launch)
{
	const struct matrix *matrix = launch->parameters[0];
	const float *vectors = *(const float **)launch->parameters[1];
	float *out = *(float **)launch->parameters[2];
	uint32_t count = *(uint32_t *)launch->parameters[3];

	for (uint32_t at = 0; at < threads(launch) && at < count; at++)
		for (int row = 0; row < 3; row++) {
			float sum = matrix->tag;

			for (int column = 0; column < 3; column++)
				sum += matrix->rows[row][column] * vectors[3 * at + column];
			out[3 * at + row] = sum;
		}
}

static const uint32_t multiply_sizes[] = {sizeof(struct matrix), 8, 8, 4};

const struct laxity_soft_kernel laxity_soft_kernels[] = {
	{"_Z6affinePfPKfffj", affine, 5, affine_sizes},
	{"_Z9incrementIjEvPT_", increment, 1, increment_sizes},
	{"_Z4spinjPj", spin, 2, spin_sizes},
	{"_Z8multiply6MatrixPKfPfj", multiply, 4, multiply_sizes},
	{NULL, NULL, 0, NULL},
};
