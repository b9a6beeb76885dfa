#include "memory.h"

#include <sys/mman.h>

bool lock_memory()
{
    return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}
