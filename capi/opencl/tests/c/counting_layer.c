/* Another layer: it counts launches and says how many there were. Compiled twice, to lie above and below. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct _cl_icd_dispatch table;
static const struct _cl_icd_dispatch *below;
static int launches, gated;

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                 const size_t *global, const size_t *local, cl_uint count, const cl_event *list,
                                 cl_event *event) {
    launches++;
    gated += count > 0;
    return below->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list, event);
}

static void say(void) { fprintf(stderr, "counted %s %d\n", NAME, launches); }

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_out) {
    cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    if (value && size < sizeof version) return CL_INVALID_VALUE;
    if (value) memcpy(value, &version, sizeof version);
    if (size_out) *size_out = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const struct _cl_icd_dispatch *target, cl_uint *count_out,
                                            const struct _cl_icd_dispatch **table_out) {
    if (count < sizeof table / sizeof(void *)) return CL_INVALID_VALUE;
    table = *target;
    below = target;
    table.clEnqueueNDRangeKernel = launch;
    *count_out = sizeof table / sizeof(void *);
    *table_out = &table;
    atexit(say);
    return CL_SUCCESS;
}
