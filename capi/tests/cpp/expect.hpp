// What tests in C++ check with.
#pragma once

#include <cstdio>
#include <cstdlib>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

// The exception of `call`.
template <typename E, typename F> E thrown(F &&call)
{
    try {
        call();
    } catch (const E &error) {
        return error;
    }
    std::fprintf(stderr, "nothing was thrown\n");
    std::exit(1);
}
