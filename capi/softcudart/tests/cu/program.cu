// A program of the vendor's compiler, which knows nothing of Laxity: prints what came out, in a fixed form.
//
//     program [compute|order|graph|threads|errors|device|kernels COUNT MICROSECONDS]...
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_));              \
            std::exit(3);                                                                                              \
        }                                                                                                              \
    } while (0)

__global__ void affine(float *out, const float *in, float a, float b, unsigned length)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < length) out[at] = a * in[at] + b;
}

template <typename Number> __global__ void increment(Number *counter) { atomicAdd(counter, Number(1)); }

__device__ long long nanoseconds()
{
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Takes so many microseconds, and leaves a mark.
__global__ void spin(unsigned microseconds, unsigned *mark)
{
    long long end = nanoseconds() + 1000LL * microseconds;
    while (nanoseconds() < end) {}
    *mark = microseconds;
}

struct Matrix {
    float rows[3][3];
    unsigned char tag;
};

// A parameter that is no register's size.
__global__ void multiply(Matrix matrix, const float *vectors, float *out, unsigned count)
{
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    for (int row = 0; row < 3; row++) {
        float sum = matrix.tag;
        for (int column = 0; column < 3; column++) sum += matrix.rows[row][column] * vectors[3 * at + column];
        out[3 * at + row] = sum;
    }
}

static unsigned long long digest(const void *bytes, size_t length)
{
    unsigned long long hash = 1469598103934665603ULL;
    for (size_t at = 0; at < length; at++) hash = (hash ^ static_cast<const unsigned char *>(bytes)[at]) * 1099511628211ULL;
    return hash;
}

static void compute(cudaStream_t stream, unsigned length)
{
    std::vector<float> source(length), target(length), wanted(length);
    for (unsigned at = 0; at < length; at++) wanted[at] = source[at] = 0.5f * at;
    float *a, *b;
    OK(cudaMalloc(&a, length * sizeof *a));
    OK(cudaMalloc(&b, length * sizeof *b));
    OK(cudaMemcpyAsync(a, source.data(), length * sizeof *a, cudaMemcpyHostToDevice, stream));
    OK(cudaMemsetAsync(b, 0xff, length * sizeof *b, stream));
    for (int round = 0; round < 3; round++) {
        affine<<<(length + 255) / 256, 256, 0, stream>>>(b, a, 2.0f, 1.0f, length);
        OK(cudaGetLastError());
        OK(cudaMemcpyAsync(a, b, length * sizeof *a, cudaMemcpyDeviceToDevice, stream));
        for (float &value : wanted) value = 2.0f * value + 1.0f;
    }
    OK(cudaMemcpyAsync(target.data(), a, length * sizeof *a, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    Matrix matrix = {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, 10};
    unsigned count = length / 3;
    std::vector<float> products(3 * count);
    if (count > 0) {
        multiply<<<(count + 127) / 128, 128, 0, stream>>>(matrix, a, b, count);
        OK(cudaMemcpyAsync(products.data(), b, products.size() * sizeof *b, cudaMemcpyDefault, stream));
        OK(cudaStreamSynchronize(stream));
    }
    std::printf("compute %u %d %016llx %016llx\n", length, target == wanted, digest(target.data(), length * sizeof *a),
                digest(products.data(), products.size() * sizeof *b));
    OK(cudaFree(a));
    OK(cudaFree(b));
}

static void computes()
{
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned length : {1u, 1000u, 100000u}) {
        compute(0, length);
        compute(stream, length);
    }
    unsigned *row, counts[4] = {};
    size_t pitch;
    OK(cudaMallocPitch(&row, &pitch, 2 * sizeof *row, 2));
    OK(cudaMemset2D(row, pitch, 7, 2 * sizeof *row, 2));
    OK(cudaMemcpy2D(counts, 2 * sizeof *row, row, pitch, 2 * sizeof *row, 2, cudaMemcpyDeviceToHost));
    std::printf("rows %08x %08x %08x %08x\n", counts[0], counts[1], counts[2], counts[3]);
    OK(cudaFree(row));
    OK(cudaStreamDestroy(stream));
}

static void CUDART_CB look(void *data)
{
    unsigned **seen = static_cast<unsigned **>(data);
    *seen[0] = *seen[1];
}

// Events and host functions keep the order of two streams.
static void order()
{
    cudaStream_t first, second;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
    unsigned *counter, *mark, seen[2] = {};
    OK(cudaMallocManaged(&counter, sizeof *counter));
    OK(cudaMallocHost(&mark, sizeof *mark));
    OK(cudaMemset(counter, 0, sizeof *counter));
    *mark = 0;
    cudaEvent_t begin, middle, end;
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&middle));
    OK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
    OK(cudaEventRecord(begin, first));
    spin<<<1, 1, 0, first>>>(20000, mark);
    increment<<<1, 1, 0, first>>>(counter);
    OK(cudaEventRecord(middle, first));
    cudaError_t state = cudaEventQuery(middle);
    bool is_known = state == cudaSuccess || state == cudaErrorNotReady;
    (void)cudaGetLastError();
    OK(cudaStreamWaitEvent(second, middle, 0));
    unsigned *views[2][2] = {{&seen[0], counter}, {&seen[1], counter}};
    OK(cudaLaunchHostFunc(second, look, views[0]));
    increment<<<1, 1, 0, second>>>(counter);
    OK(cudaLaunchHostFunc(second, look, views[1]));
    OK(cudaEventRecord(end, second));
    OK(cudaEventSynchronize(end));
    float took = 0;
    OK(cudaEventElapsedTime(&took, begin, middle));
    std::printf("order %u %u %u %d %d\n", seen[0], seen[1], *mark, is_known, took >= 20);
    OK(cudaEventDestroy(begin));
    OK(cudaEventDestroy(middle));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
    OK(cudaFree(counter));
    OK(cudaFreeHost(mark));
}

// A captured stream runs as often as its graph is launched.
static void graph()
{
    cudaStream_t stream, other;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    cudaEvent_t fork, join;
    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    unsigned *counter, value = 0;
    OK(cudaMalloc(&counter, sizeof *counter));
    OK(cudaMemset(counter, 0, sizeof *counter));
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    increment<<<1, 1, 0, stream>>>(counter);
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    increment<<<1, 1, 0, other>>>(counter);
    OK(cudaEventRecord(join, other));
    OK(cudaStreamWaitEvent(stream, join, 0));
    increment<<<1, 1, 0, stream>>>(counter);
    OK(cudaStreamEndCapture(stream, &captured));
    size_t nodes = 0;
    OK(cudaGraphGetNodes(captured, nullptr, &nodes));
    OK(cudaGraphInstantiate(&executable, captured, 0));
    for (int launch = 0; launch < 4; launch++) OK(cudaGraphLaunch(executable, stream));
    OK(cudaMemcpyAsync(&value, counter, sizeof value, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    std::printf("graph %zu %u\n", nodes, value);
    OK(cudaGraphExecDestroy(executable));
    OK(cudaGraphDestroy(captured));
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
    OK(cudaStreamDestroy(stream));
    OK(cudaStreamDestroy(other));
    OK(cudaFree(counter));
}

// Threads on their default streams: one for all, or one for each, as the program was compiled.
static void threads()
{
    std::vector<unsigned> values(4);
    std::vector<std::thread> all;
    for (unsigned &value : values)
        all.emplace_back([&value] {
            unsigned *counter;
            OK(cudaMalloc(&counter, sizeof *counter));
            OK(cudaMemset(counter, 0, sizeof *counter));
            for (int round = 0; round < 50; round++) increment<<<1, 1>>>(counter);
            OK(cudaMemcpy(&value, counter, sizeof value, cudaMemcpyDeviceToHost));
            OK(cudaFree(counter));
        });
    for (std::thread &thread : all) thread.join();
    std::printf("threads %u %u %u %u\n", values[0], values[1], values[2], values[3]);
}

static void errors()
{
    unsigned *counter;
    OK(cudaMalloc(&counter, sizeof *counter));
    increment<<<1, 4096>>>(counter);
    cudaError_t launch = cudaPeekAtLastError(), forgotten = cudaGetLastError(), next = cudaGetLastError();
    cudaError_t device = cudaSetDevice(1000);
    cudaError_t direction = cudaMemcpy(counter, counter, sizeof *counter, static_cast<cudaMemcpyKind>(77));
    cudaError_t memory = cudaMalloc(&counter, size_t(1) << 50);
    (void)cudaGetLastError();
    std::printf("errors %s %d %d %s %s %s\n", cudaGetErrorName(launch), launch == forgotten, next, cudaGetErrorName(device),
                cudaGetErrorName(direction), cudaGetErrorName(memory));
}

static void device()
{
    cudaDeviceProp properties;
    int count = 0, threads = 0, warp = 0, pool = 0, bus = 0, runtime = 0, driver = 0;
    std::memset(&properties, 0xa5, sizeof properties);
    OK(cudaGetDeviceCount(&count));
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0));
    OK(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
    OK(cudaDeviceGetAttribute(&pool, cudaDevAttrMemoryPoolsSupported, 0));
    OK(cudaDeviceGetAttribute(&bus, cudaDevAttrPciDomainId, 0));
    OK(cudaRuntimeGetVersion(&runtime));
    OK(cudaDriverGetVersion(&driver));
    size_t free_bytes = 0, total = 0;
    OK(cudaMemGetInfo(&free_bytes, &total));
    bool are_same = properties.maxThreadsPerBlock == threads && properties.warpSize == warp && properties.pciDomainID == bus
        && properties.memoryPoolsSupported == pool && properties.totalGlobalMem == total && properties.surfaceAlignment == 512;
    bool is_whole = properties.reserved[55] == 0 && properties.hostNumaMultinodeIpcSupported == 0;
    void *memory;
    cudaPointerAttributes attributes;
    OK(cudaMalloc(&memory, 64));
    OK(cudaPointerGetAttributes(&attributes, memory));
    cudaFuncAttributes function;
    OK(cudaFuncGetAttributes(&function, affine));
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, affine, 256, 0));
    std::printf("device %d %s %d.%d %d %d %d %d %d %d %d\n", count, properties.name, properties.major, properties.minor,
                are_same, is_whole, runtime >= driver, attributes.type == cudaMemoryTypeDevice,
                attributes.devicePointer == memory, function.maxThreadsPerBlock == threads, blocks > 0);
    OK(cudaFree(memory));
}

// So many kernels of such a length, each waited for.
static void kernels(unsigned count, unsigned microseconds)
{
    unsigned *mark;
    OK(cudaMallocHost(&mark, sizeof *mark));
    for (unsigned round = 0; round < count; round++) {
        spin<<<1, 1>>>(microseconds, mark);
        OK(cudaDeviceSynchronize());
    }
    std::printf("kernels %u\n", *mark);
    OK(cudaFreeHost(mark));
}

int main(int count, char **words)
{
    std::vector<std::string> what(words + 1, words + count);
    if (what.empty()) what = {"compute", "order", "graph", "threads", "errors", "device"};
    for (size_t at = 0; at < what.size(); at++) {
        if (what[at] == "compute") computes();
        if (what[at] == "order") order();
        if (what[at] == "graph") graph();
        if (what[at] == "threads") threads();
        if (what[at] == "errors") errors();
        if (what[at] == "device") device();
        if (what[at] == "kernels") kernels(std::stoul(what[at + 1]), std::stoul(what[at + 2]));
    }
    std::puts("end");
    return 0;
}
