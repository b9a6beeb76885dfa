/* Calls with wrong arguments: the driver names the error, with any layer. Prints what each call answers. */
#include "program.h"

static unsigned long state = 12345;

static unsigned pick(unsigned bound) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % bound;
}

int main(int count, char **arguments) {
    begin();
    if (count > 1) state = strtoul(arguments[1], NULL, 10);
    cl_int status;
    cl_command_queue queue = new_queue(0);
    cl_mem buffer = new_buffer(4096);
    cl_kernel kernel = new_kernel("add", buffer, 1);
    static char host[8192];
    /* Complete. Not drawn below, as pocl 3.1 crashes: kernels without arguments or sizes, or of two dimensions. */
    cl_event known, another, event;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 64, host, 0, NULL, &known));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 64, host, 0, NULL, &another));
    size_t sizes[] = {64, 1, 1};
    for (int round = 0; round < 400; round++) {
        cl_uint waits = pick(3);
        cl_event list[2] = {known, another};
        const cl_event *given = pick(4) ? list : NULL;
        cl_event *out = pick(2) ? &event : NULL;
        cl_command_queue here = pick(8) ? queue : NULL;
        cl_mem memory = pick(6) ? buffer : NULL;
        size_t offset = pick(5) ? 0 : 4000, bytes = pick(6) ? 64 : 8000;
        event = NULL;
        unsigned kind = pick(6);
        switch (kind) {
        case 0:
            status = clEnqueueReadBuffer(here, memory, pick(2), offset, bytes, pick(5) ? host : NULL, waits, given, out);
            break;
        case 1:
            status = clEnqueueWriteBuffer(here, memory, pick(2), offset, bytes, pick(5) ? host : NULL, waits, given, out);
            break;
        case 2:
            status = clEnqueueNDRangeKernel(here, kernel, pick(2) ? 0 : 4, NULL,
                                            sizes, NULL, waits, given, out);
            break;
        case 3:
            status = clEnqueueCopyBuffer(here, memory, pick(5) ? buffer : NULL, offset, 2048, bytes, waits, given, out);
            break;
        case 4: {
            void *mapped = clEnqueueMapBuffer(here, memory, CL_TRUE, CL_MAP_READ, offset, bytes, waits, given, out, &status);
            if (mapped) OK(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
            printf("%d", mapped != NULL);
            break;
        }
        default:
            status = clEnqueueFillBuffer(here, memory, host, pick(4) ? 4 : 3, offset, pick(4) ? 64 : 63, waits, given, out);
            break;
        }
        printf(" %u:%d:%d", kind, status, event != NULL);
        if (event) clReleaseEvent(event);
    }
    printf("\n%d %d %d\n", clFinish(NULL), clWaitForEvents(0, NULL), clReleaseCommandQueue(NULL));
    OK(clFinish(queue));
    clReleaseKernel(kernel), clReleaseMemObject(buffer), clReleaseEvent(known), clReleaseEvent(another);
    OK(clReleaseCommandQueue(queue));
    printf("end\n");
    return 0;
}
