#include <stdbool.h>
#include <stddef.h>

static bool grab(void *state, void *frame, size_t capacity, size_t *length)
{
    *length = capacity;
    return state && frame;
}

// own-code.md 1
