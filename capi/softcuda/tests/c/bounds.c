/* Copies and fills whose bytes are beyond an allocation, or beyond all addresses, are refused. */
#include "start.h"

enum { BYTES = 4096, PITCH = 64, ROWS = BYTES / PITCH };

static char bytes[4 * BYTES];
static CUdeviceptr memory;

static struct copy_2d in(unsigned kind, size_t pitch, size_t height)
{
	return (struct copy_2d){
		.from_kind = HOST, .from_host = bytes, .from_pitch = PITCH, .to_kind = kind, .to_device = memory,
		.to_pitch = pitch, .width = PITCH, .height = height,
	};
}

static CUresult copy(struct copy_2d copy)
{
	return cuMemcpy2D(&copy);
}

int main(void)
{
	start();
	memory = zeros(BYTES / 4);
	for (unsigned kind = DEVICE; kind <= UNIFIED; kind += UNIFIED - DEVICE) {
		struct copy_2d beside = in(kind, PITCH, 1), overflowing = in(kind, PITCH, 1);

		OK(copy(in(kind, PITCH, ROWS)));
		EXPECT(1, copy(in(kind, PITCH, ROWS + 1)));
		EXPECT(1, copy(in(kind, (size_t)1 << 63, 3)));
		beside.to_y = ROWS;
		EXPECT(1, copy(beside));
		overflowing.to_y = (size_t)1 << 58;
		EXPECT(1, copy(overflowing));
		overflowing = in(kind, PITCH, 0);
		OK(copy(overflowing));
	}
	/* Out of the device, to memory that the driver does not know. */
	struct copy_2d out = {
		.from_kind = UNIFIED, .from_device = memory, .from_pitch = PITCH, .to_kind = UNIFIED,
		.to_device = (CUdeviceptr)(uintptr_t)bytes, .to_pitch = PITCH, .width = PITCH, .height = ROWS,
	};
	OK(copy(out));
	out.height = ROWS + 1;
	EXPECT(1, copy(out));

	struct copy_3d planes = {
		.from = {.kind = HOST, .host = bytes, .pitch = PITCH, .height = 2},
		.to = {.kind = UNIFIED, .device = memory, .pitch = PITCH, .height = 2},
		.width = PITCH, .height = 2, .depth = ROWS / 2,
	};
	OK(cuMemcpy3D(&planes));
	planes.depth++;
	EXPECT(1, cuMemcpy3D(&planes));
	planes.depth = 3;
	planes.to.height = (size_t)1 << 57;
	EXPECT(1, cuMemcpy3D(&planes));

	OK(cuMemsetD2D8(memory, PITCH, 0, PITCH, ROWS));
	EXPECT(1, cuMemsetD2D8(memory, PITCH, 0, PITCH, ROWS + 1));
	EXPECT(1, cuMemsetD2D8(memory, (size_t)1 << 63, 0, 1, 3));
	EXPECT(1, cuMemsetD2D8(memory, PITCH, 0, 1, (size_t)1 << 60));
	puts("end");
	return 0;
}
