// Code that `laxity run` calls: the interface between a workload file and functions of a shared library.
//
// A task or node of a workload file names a function,
//
//     run = { library = "libfusion.so", symbol = "camera", init = "camera_init", exit = "camera_exit", warm = true }
//
// and each of its jobs calls it in place of using up CPU time: on the job's thread, under the file's scheduler, once for each
// step of the body that has a time and is not the GPU's (`cpu`, `nonpreemptive`, `suspend`). A body that is `wcet` alone is
// one step. A library needs this header only, and links nothing of Laxity:
//
//     #include <laxity/code.h>
//
//     LAXITY_CODE_LIBRARY
//
//     LAXITY_CODE int camera(struct laxity_code_call *call) {
//         struct laxity_code_message *frame = &call->outputs[0].messages[0];
//         return grab(frame->data, frame->capacity, &frame->length) ? 0 : 1;
//     }
//
// Build it with `cc -shared -fPIC -O2 -o libfusion.so fusion.c`.

#ifndef LAXITY_CODE_H
#define LAXITY_CODE_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface. Later versions may append fields to structs; another number means that old ones changed.
#define LAXITY_CODE_ABI 1

// The number of the job of a call that warms up: before time 0, without messages.
#define LAXITY_CODE_WARM_UP UINT64_MAX

#ifdef __cplusplus
#define LAXITY_CODE extern "C" __attribute__((visibility("default")))
#else
#define LAXITY_CODE __attribute__((visibility("default")))
#endif

// To be written once in each library: it says for which version of this header the library was built.
#ifdef __cplusplus
#define LAXITY_CODE_LIBRARY                                                                                                \
    extern "C" __attribute__((visibility("default"))) const uint32_t laxity_code_abi;                                     \
    extern "C" const uint32_t laxity_code_abi = LAXITY_CODE_ABI;                                                           \
    LAXITY_CODE_GUARD
#else
#define LAXITY_CODE_LIBRARY __attribute__((visibility("default"))) const uint32_t laxity_code_abi = LAXITY_CODE_ABI;
#endif

// The sorts of steps.
enum laxity_code_kind {
    // CPU time.
    LAXITY_CODE_CPU = 0,
    // CPU time in which no other job preempts this one.
    LAXITY_CODE_NONPREEMPTIVE = 1,
    // The job suspends itself: the function waits, for a device or another program, and returns when it need not any more.
    LAXITY_CODE_SUSPEND = 2,
};

// A message, in place: in memory that its producer wrote and its consumer reads, aligned to 64 bytes. It is valid until the
// job ends. Messages that come in are not to be written.
struct laxity_code_message {
    void *data;
    // Bytes that it has. Of one that goes out it is `capacity` until the function says less.
    size_t length;
    // Bytes that fit: `message` of the edge in the workload file.
    size_t capacity;
};

// An edge with messages. Edges that carry tokens alone are left out.
struct laxity_code_edge {
    // The node at its other end.
    const char *peer;
    // Messages, the oldest first: as many as the threshold of the edge says, or as a job produces. 0 when it warms up. Of a
    // latest-value edge that comes in 1, or 0 before the first job of its producer was complete.
    uint32_t count;
    // Of these the job takes away so many, from the first on; it sees the others again. None of a latest-value edge.
    uint32_t taken;
    struct laxity_code_message *messages;
};

// What a function is given of a step. All of it belongs to Laxity.
struct laxity_code_call {
    // The size of this struct and its version, as the caller knows them.
    uint32_t size;
    uint32_t abi;
    // The name of the task, or GRAPH/NODE.
    const char *task;
    // The number of the job, from 0, or LAXITY_CODE_WARM_UP.
    uint64_t job;
    // When the job arrived and when it is due, both on CLOCK_MONOTONIC.
    uint64_t release_ns;
    uint64_t deadline_ns;
    // Which of the steps that call the function, from 0, and of what kind: one of laxity_code_kind.
    uint32_t step;
    uint32_t kind;
    // The edges of the node, in the order of the file, latest-value edges behind the others; none of a task.
    uint32_t input_count;
    uint32_t output_count;
    const struct laxity_code_edge *inputs;
    struct laxity_code_edge *outputs;
    // The state that the `init` function made for this task; NULL without one.
    void *state;
};

// The layout, which Laxity's own side of the interface asserts, too.
#ifdef __cplusplus
#define LAXITY_CODE_LAYOUT static_assert
#else
#define LAXITY_CODE_LAYOUT _Static_assert
#endif
LAXITY_CODE_LAYOUT(sizeof(struct laxity_code_message) == 24 && offsetof(struct laxity_code_message, capacity) == 16, "messages");
LAXITY_CODE_LAYOUT(sizeof(struct laxity_code_edge) == 24 && offsetof(struct laxity_code_edge, messages) == 16, "edges");
LAXITY_CODE_LAYOUT(sizeof(struct laxity_code_call) == 80 && offsetof(struct laxity_code_call, job) == 16 &&
                       offsetof(struct laxity_code_call, step) == 40 && offsetof(struct laxity_code_call, inputs) == 56 &&
                       offsetof(struct laxity_code_call, state) == 72,
                   "calls");

// The function of jobs. Another result than 0 ends the run with an error that names task, job and result. It must not throw:
// the run ends then, too, and the error has the text of the exception if the library was built as C++.
typedef int laxity_code_function(struct laxity_code_call *call);

// The function that is called once for each task that names it, on its thread, before the first job; other results than 0
// end the run.
typedef int laxity_code_init(const char *task, void **state);

// The function that is called once after the last job, on the same thread.
typedef void laxity_code_exit(void *state);

// A library in C++ has a function that calls another one, catches its exception, and writes the text of that.
#if defined(__cplusplus) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS))

extern "C++" {

#include <exception>
#include <stdio.h>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace laxity
{

// Calls `call`. Returns whether it threw: `what`, of `size` bytes, has the text of the exception then.
inline int guard_code(void (*call)(void *), void *argument, char *what, size_t size)
{
    try {
        call(argument);
        return 0;
    } catch (const std::exception &error) {
        snprintf(what, size, "%s", error.what());
#ifdef __GLIBCXX__
    } catch (abi::__forced_unwind &) {
        // By pthread_exit.
        throw;
#endif
    } catch (...) {
        snprintf(what, size, "it is no std::exception");
    }
    return 1;
}

} // namespace laxity

} // extern "C++"

#define LAXITY_CODE_GUARD                                                                                                  \
    extern "C" __attribute__((visibility("default"))) int laxity_code_guard(void (*)(void *), void *, char *, size_t);    \
    extern "C" int laxity_code_guard(void (*call)(void *), void *argument, char *what, size_t size)                       \
    {                                                                                                                      \
        return laxity::guard_code(call, argument, what, size);                                                             \
    }

#else
#define LAXITY_CODE_GUARD
#endif

#endif
