#include <laxity/kernel.hpp>

[[noreturn]] void use(void (*control)(uint64_t deadline_ns));

void use(void (*control)(uint64_t deadline_ns))
{
// c.md 2
}
