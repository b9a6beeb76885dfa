/* A library that a program loads and unloads: it copies, and does not wait. */
#include "program.h"

enum { BYTES = 32 << 20, COPIES = 8 };

void start(void) {
    static unsigned char *from;
    begin();
    cl_command_queue queue = new_queue(0);
    cl_mem buffer = new_buffer(BYTES);
    from = malloc(BYTES);
    memset(from, 7, BYTES);
    for (int copy = 0; copy < COPIES; copy++)
        OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, from, 0, NULL, NULL));
    OK(clFlush(queue));
}
