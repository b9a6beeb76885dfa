#include <laxity.h>

void use(void (*control)(void));

void use(void (*control)(void))
{
// scheduling.md 1
}
