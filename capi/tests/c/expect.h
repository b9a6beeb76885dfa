// What all tests in C say: a program ends where something is not as it has to be.

#ifndef EXPECT_H
#define EXPECT_H

#include <laxity.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                                                             \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,                            \
                    laxity_last_error()->message);                                                                    \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

#define OK(call) EXPECT((call) == LAXITY_OK)

#endif
