#include "memory.h"

#include <pthread.h>
#include <sys/mman.h>

namespace
{

// Several times what OpenCV's functions take, and an eighth of what Linux gives.
constexpr size_t STACK_BYTES = 1 << 20;

} // namespace

bool lock_memory()
{
    pthread_attr_t attributes;

    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return false;
    if (pthread_attr_init(&attributes) == 0) {
        // If that is refused stacks stay large, and nothing else changes.
        if (pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0)
            pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
    }
    return true;
}
