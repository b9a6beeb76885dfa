#include <laxity.h>

void use(void (*launch_and_wait)(uint32_t gpu));

void use(void (*launch_and_wait)(uint32_t gpu))
{
// gpu.md 1
}
