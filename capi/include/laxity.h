// Laxity for C: live graphs, threads and processes that exchange tokens and data over named graphs in shared memory; and
// GPUs that processes share.
//
// Made from capi/src: edit that, and run `LAXITY_BLESS=1 cargo test -p laxity-capi --test header`.
//
// Results   Every function that can fail returns a laxity_result, and laxity_last_error() has the details: a message,
//           the node, the edge and the process in question. Results that it gives through pointers are NULL if it
//           failed, or not written.
// Handles   Pointers to structs without a definition. Whoever got one releases it, once, through the address of the
//           variable that holds it, which is NULL afterwards; releasing NULL does nothing. Copies of it are then
//           invalid. NULL and handles of another type are refused. A released handle is refused where memory still
//           tells; do not count on it. Handles may be released in any order.
// Threads   Registries, graphs, descriptions and recordings may be used by many threads at once, a node and its job by
//           one at a time: a second one gets LAXITY_ERROR_BUSY. A client of GPUs, and a thread of a device,
//           belongs to the thread that registered it; its budget is for any thread.
// Texts     UTF-8 that ends with NUL. Those passed are copied; those returned are the library's.
// Processes All are trusted with the memory that they share. A child made by fork() attaches by itself, or executes
//           another program.

#ifndef LAXITY_H
#define LAXITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As a time-out: wait for ever.
#define LAXITY_FOREVER UINT64_MAX

// What the input callback returns if there is no frame any more.
#define LAXITY_VX_END -1

// Where the items of an array begin; its first 8 bytes are a `uint64_t` that says how many there are.
#define LAXITY_VX_ARRAY_ITEMS 64

// How a call went. The numbers stay what they are; later versions may add some.
enum laxity_result {
    // It did what it says.
    LAXITY_OK = 0,
    // A wait: the time is over. One may wait again.
    LAXITY_TIMED_OUT = 1,
    // A wait: a node that this one waits for has ended and nothing is left of what it produced, or this one was ended.
    LAXITY_TERMINATED = 2,
    // A wait: a node that this one waits for was lost, with its process or in the middle of a job. Said once for each
    // loss; whoever waits again waits for it to be claimed again, and to go on.
    LAXITY_LOST = 3,
    // A conditional write of user data: someone else has written since. Nothing was written.
    LAXITY_CHANGED = 4,
    // An argument is NULL that must not be.
    LAXITY_ERROR_NULL = 10,
    // A handle is none, is released, or is of another type.
    LAXITY_ERROR_HANDLE = 11,
    // A text is not UTF-8.
    LAXITY_ERROR_TEXT = 12,
    // Another thread is using the node, or waits for its next job.
    LAXITY_ERROR_BUSY = 13,
    // An argument has a value that it cannot have.
    LAXITY_ERROR_VALUE = 14,
    // The graph cannot be carried out: a rate, a period, a name, a ring that is too small.
    LAXITY_ERROR_SPEC = 20,
    // The graph's name cannot be one.
    LAXITY_ERROR_NAME = 21,
    // A graph that is in use has the name.
    LAXITY_ERROR_EXISTS = 22,
    // There is no such graph.
    LAXITY_ERROR_NO_GRAPH = 23,
    // The graph that has the name is another one.
    LAXITY_ERROR_DIFFERENT = 24,
    // What has the name is no graph of this version of Laxity.
    LAXITY_ERROR_FOREIGN = 25,
    // As many processes as can be are attached.
    LAXITY_ERROR_FULL = 26,
    // There is not enough shared memory.
    LAXITY_ERROR_MEMORY = 27,
    // Linux refuses.
    LAXITY_ERROR_SYSTEM = 28,
    // An edge cannot have its channel: it would hold more than Linux grants, or what has its name is something else.
    LAXITY_ERROR_CHANNEL = 29,
    // The graph has no such node.
    LAXITY_ERROR_NO_NODE = 30,
    // The graph has no such edge.
    LAXITY_ERROR_NO_EDGE = 31,
    // Someone has claimed the node, or every node.
    LAXITY_ERROR_CLAIMED = 32,
    // The process that had the node was killed but has not ended. Try again.
    LAXITY_ERROR_ENDING = 33,
    // This process was forked from the one that attached. Attach here.
    LAXITY_ERROR_FORKED = 34,
    // The graph has no such data object.
    LAXITY_ERROR_NO_OBJECT = 35,
    // A claim: the node cannot listen at the address of an edge, for instance as another program has the port.
    LAXITY_ERROR_LISTEN = 36,
    // A wait: the node that listens for messages of this one cannot be connected to. One may wait again.
    LAXITY_ERROR_UNREACHABLE = 37,
    // Linux does not schedule the thread as asked; it is scheduled as before.
    LAXITY_ERROR_SCHEDULE = 38,
    // The job is complete, or none was begun.
    LAXITY_ERROR_NO_JOB = 40,
    // A wait before the job that it began is complete.
    LAXITY_ERROR_INCOMPLETE = 41,
    // The edge carries no messages at this node, or leads the other way.
    LAXITY_ERROR_NO_RING = 42,
    // The job has fewer messages.
    LAXITY_ERROR_NO_MESSAGE = 43,
    // A message is longer than the edge's longest.
    LAXITY_ERROR_TOO_LONG = 44,
    // The node does not say that it uses the data object so.
    LAXITY_ERROR_ACCESS = 45,
    // A message that went through a channel of Linux was taken along by a former owner of a node, who was killed or let
    // go. The job goes on without.
    LAXITY_ERROR_MESSAGE_LOST = 46,
    // The graph has no recorder: it knows no releases, and cannot be traced.
    LAXITY_ERROR_NO_RECORDER = 47,
    // A trace file cannot be written.
    LAXITY_ERROR_FILE = 48,
    // Messages of these edges cannot be swapped at this node, or the job leaves the message for the next.
    LAXITY_ERROR_SWAP = 49,
    // GPUs cannot be shared so: a number is outside its range, or the arbitration is none that can be done live.
    LAXITY_ERROR_CONFIG = 50,
    // There is no such arbitration.
    LAXITY_ERROR_NO_ARBITRATION = 51,
    // A thread's name or priority cannot be one.
    LAXITY_ERROR_CLIENT = 52,
    // There is no such GPU, or a copy is from a GPU to itself.
    LAXITY_ERROR_NO_GPU = 53,
    // There is no such engine, or it copies nothing.
    LAXITY_ERROR_NO_ENGINE = 54,
    // The thread holds it or what comes after it: a token comes first, then engines in the order of GPUs.
    LAXITY_ERROR_ORDER = 55,
    // The thread holds no token.
    LAXITY_ERROR_NO_TOKEN = 56,
    // Another thread registered the client.
    LAXITY_ERROR_THREAD = 57,
    // A soft GPU cannot be opened: its server cannot be started, or is of another version or user.
    LAXITY_ERROR_NO_SOFT_GPU = 60,
    // The server of a soft GPU ended: what was pending does not happen, and device memory is lost. Open it again.
    LAXITY_ERROR_GONE = 61,
    // Bytes that are not within the buffer.
    LAXITY_ERROR_RANGE = 62,
    // Two operations use the same bytes of device memory at the same time, and one writes.
    LAXITY_ERROR_RACE = 63,
    // A buffer is another device's, or in the memory of another GPU than the one that the job uses.
    LAXITY_ERROR_BUFFER = 64,
    // A GPU kernel failed; the details have its number.
    LAXITY_ERROR_KERNEL = 65,
    // A GPU kernel cannot issue operations.
    LAXITY_ERROR_INSIDE = 66,
    // The budget of the job is exhausted, and its token was let go of. Go on when it is replenished.
    LAXITY_ERROR_EXHAUSTED = 67,
    // A vision graph cannot be executed.
    LAXITY_ERROR_VERIFY = 70,
    // A node of a vision graph has failed, and the graph has stopped.
    LAXITY_ERROR_FAILED = 71,
    // A fault in Laxity. The process may go on, but please report it.
    LAXITY_ERROR_INTERNAL = 99,
};

// Whose a node is.
enum laxity_ownership {
    // Nobody's.
    LAXITY_FREE = 0,
    // A process has claimed it.
    LAXITY_CLAIMED = 1,
    // Its process died, or let go of it in the middle of a job.
    LAXITY_NODE_LOST = 2,
};

// By which rules GPUs are shared.
enum laxity_arbitration {
    // GPUSync: tokens, then engine locks.
    LAXITY_GPUSYNC = 0,
    // The k-FMLP: one token a GPU, first come, first served; the parameters of GPUSync have no meaning.
    LAXITY_K_FMLP = 1,
};

// How messages travel over an edge. Whatever it is, a wait is one suspension, and messages are written and read the same
// way.
enum laxity_channel {
    // In shared memory, without a copy.
    LAXITY_CHANNEL_MEMORY = 0,
    // Through a named pipe.
    LAXITY_CHANNEL_FIFO = 1,
    // Through a POSIX message queue.
    LAXITY_CHANNEL_QUEUE = 2,
    // Through a TCP connection: the consumer listens while it has its node, and the producer waits until it does.
    LAXITY_CHANNEL_TCP = 3,
};

// What a GPU's operation occupies.
enum laxity_engine {
    // The engine that executes GPU kernels.
    LAXITY_ENGINE_EXECUTION = 0,
    // The one that copies to the GPU.
    LAXITY_ENGINE_COPY_IN = 1,
    // The one that copies from the GPU; with one copy engine, the same.
    LAXITY_ENGINE_COPY_OUT = 2,
};

// Whether a job may run before its release.
enum laxity_releasing {
    // It may, with the deadline that it has anyway. As at first.
    LAXITY_RELEASING_EARLY = 0,
    // It may not: a wait ends no sooner than the release.
    LAXITY_RELEASING_ON_TIME = 1,
};

// How a thread of the soft GPU is scheduled that works on behalf of others.
enum laxity_service {
    // As urgently as those threads of this process that hold a token of the GPU; without an arbitration, as it is.
    LAXITY_SERVICE_OWNERS = 0,
    // As the thread that opened the device.
    LAXITY_SERVICE_AS_IS = 1,
    // Under SCHED_FIFO at a priority of its own.
    LAXITY_SERVICE_FIXED = 2,
};

// How Linux schedules the threads of nodes.
enum laxity_vx_policy {
    // SCHED_OTHER: as other programs.
    LAXITY_VX_OTHER = 0,
    // SCHED_FIFO: `base_priority`, and the length of the longest path to the node.
    LAXITY_VX_FIFO = 1,
    // SCHED_DEADLINE: the node's budget in each period.
    LAXITY_VX_DEADLINE = 2,
    // SCHED_DEADLINE with budgets that are measured: after `measured_frames` frames under SCHED_OTHER, for nodes that do
    // not say theirs.
    LAXITY_VX_DEADLINE_MEASURED = 3,
};

// The budget of a thread's jobs, for whoever watches it: another thread, or the same one between its calls. Threads
// share it, and it may outlive the client.
struct laxity_budget;

// Memory of a GPU. Threads share it.
struct laxity_buffer;

// The soft GPUs that this process uses. Threads share it.
struct laxity_device;

// A thread that uses a device. That thread alone uses and releases it.
struct laxity_device_thread;

// A thread that is registered with an arbitration. That thread alone uses and releases it.
struct laxity_gpu_client;

// An arbitration that this process is attached to: GPUs that processes share, by name. Threads share it.
struct laxity_gpus;

// A graph that this process is attached to. Threads may share it.
struct laxity_graph;

// The job of a node that was begun and is not complete. It belongs to its node, which has one handle for all its jobs:
// it is neither released nor used after the node is.
struct laxity_job;

// A claimed node. One thread uses it at a time; it need not be the one that claimed it.
struct laxity_node;

// A graph described by what its nodes do with data objects: memory that nodes share, of which consecutive runs of the
// graph have replicas. Edges follow: the graph computes what a loop computes that calls one node after the other. An
// object is written by one node, which goes first; those that read or change it follow in the order in which they are
// added.
struct laxity_pipeline;

// A trace file that is being written. Threads may share it.
struct laxity_recording;

// Where graphs have their names. Threads may share it.
struct laxity_registry;

// The description of a graph.
struct laxity_spec;

// What a kernel sees of device memory, while it runs.
struct laxity_view;

// A vision graph that is being described. Who waits for whom follows from what nodes do with objects, when it is
// verified.
struct laxity_vx_graph;

// What a kernel sees of its node in one frame, until it returns; for the thread that runs it.
struct laxity_vx_job;

// A vision graph that is executed. Threads share it.
struct laxity_vx_run;

// A vision graph that can be spawned, again when it has ended. Threads share it.
struct laxity_vx_verified;

// What went wrong, with names. It and its texts belong to the library; they are there until another call of the same
// thread does not return LAXITY_OK, or the thread ends.
struct laxity_error {
    // The result that the call returned.
    enum laxity_result result;
    // What went wrong, with the way out; never NULL.
    const char *message;
    // The node in question, or NULL.
    const char *node;
    // The producer of the edge in question, or NULL.
    const char *from;
    // The consumer of the edge in question, or NULL.
    const char *to;
    // The process in question, or 0.
    uint32_t pid;
};

// What moves over an edge. All zeros: one token a job, and no data.
struct laxity_edge {
    // Tokens that each completed job of the producer adds; 0 means 1.
    uint32_t produce;
    // Tokens that each job of the consumer takes away; 0 means 1.
    uint32_t consume;
    // Tokens that must be there before a job of the consumer begins; 0 means as many as it takes away.
    uint32_t threshold;
    // Tokens at the start.
    uint32_t initial;
    // The longest message, in bytes. If this and `slots` are 0 the edge carries tokens alone, and is never full.
    uint32_t message_bytes;
    // Messages that fit, one with each token.
    uint32_t slots;
    // Whether it closes a cycle; such an edge needs initial tokens.
    bool back_edge;
    // How messages travel, one of enum laxity_channel; of no meaning on an edge without messages.
    uint32_t channel;
    // Where the consumer listens, for LAXITY_CHANNEL_TCP: an address with a port, where 0 lets Linux choose one. NULL is
    // 127.0.0.1:0. For as long as the call lasts.
    const char *address;
};

// What a node does with an object: an input reads it, an output writes all of it, and what does both changes it in
// place.
struct laxity_parameter {
    // The name of the object.
    const char *object;
    // Whether the node reads it.
    bool reads;
    // Whether the node writes it.
    bool writes;
    // For an input: reads what was there so many jobs ago, up to the depth of the delay.
    uint32_t ago;
};

// What a node is doing.
struct laxity_status {
    // Whose it is.
    enum laxity_ownership ownership;
    // The process that has it, or 0.
    uint32_t pid;
    // Jobs that were begun.
    uint64_t started;
    // Jobs that are complete.
    uint64_t completed;
    // Whether it has ended.
    bool has_terminated;
    // Whether its owner is suspended until tokens, room, or its release come.
    bool is_waiting;
    // Whether its owner is telling two consumers or more that their tokens are there.
    bool is_sending;
};

// What a recording did so far.
struct laxity_collected {
    // Records written.
    uint64_t records;
    // Jobs that were over and forgotten before the recording began.
    uint64_t missed;
    // Jobs that were forgotten since, before they were collected: collect more often, or make the recorder deeper. The
    // trace then counts as cut off.
    uint64_t lost;
    // Beginnings and completions that were written down so late that they have the time of later ones.
    uint64_t late;
};

// The GPUs of one cluster, and how they are shared. All zeros but for `cpus` and `gpus`: GPUSync's defaults.
struct laxity_gpu_config {
    // CPUs that the threads which share them run on.
    uint16_t cpus;
    // GPUs, at most 64.
    uint16_t gpus;
    // Copy engines of each GPU: 1 or 2; 0 means 2.
    uint8_t copy_engines;
    // Engines go to the highest priority first, not to who came first.
    bool engines_by_priority;
    // One of enum laxity_arbitration.
    uint32_t arbitration;
    // Tokens of each GPU; 0 means 1.
    uint32_t tokens;
    // The most requests in the queue of a token, its holder's included; 0: as many as it takes for all CPUs.
    uint32_t fifo_length;
    // The most requests in the queues of all tokens together; 0: as there are CPUs.
    uint32_t fifo_requests;
    // The most threads that may be registered at a time; 0 means 64.
    uint16_t clients;
    // Copies are broken into chunks of at most this many bytes; 0: they are not.
    uint64_t chunk_bytes;
};

// What a device is like. All zeros but for `name`: one soft GPU with defaults.
struct laxity_device_config {
    // The name of the soft GPU; if there are several, theirs are this and .0, .1 and so on.
    const char *name;
    // How many soft GPUs; 0: as many as the arbitration has, or one.
    uint16_t gpus;
    // Copy engines of each: 1 or 2; 0: as many as the arbitration has, or 2.
    uint8_t copy_engines;
    // Threads that wait for an operation look again and again instead of being suspended.
    bool spins;
    // Bytes of memory of each, of which this machine gives what is allocated; 0: 64 MiB.
    uint64_t memory;
    // Bytes that a copy engine copies in a second at most; 0: as fast as this machine does.
    uint64_t copy_rate;
    // How the threads are scheduled that handle interrupts and call callbacks: one of enum laxity_service.
    uint32_t handling;
    // How those are scheduled that carry out kernels and copies in this process.
    uint32_t engines;
    // The priorities for LAXITY_SERVICE_FIXED, 1 to 99.
    uint8_t handling_priority;
    uint8_t engines_priority;
    // The program that is the soft GPU's server; NULL: LAXITY_SOFTGPU_SERVER of the environment, or
    // laxity-softgpu-server beside this program or in PATH.
    const char *server;
};

// A GPU kernel: a function that runs in this process, on a thread of the soft GPU's, while the execution engine is its
// own. It returns 0, or a number of its own that says what went wrong; it must not throw. It cannot issue operations.
typedef int32_t (*laxity_kernel)(void *argument, const struct laxity_view *view);

// A parameter of a node: an input reads an object, an output writes all of it, and what does both changes it in place.
struct laxity_vx_parameter {
    // The object: the number that it was given.
    uint32_t object;
    // Whether the node reads it.
    bool reads;
    // Whether the node writes it.
    bool writes;
    // For an input: reads the slot of so many jobs ago.
    uint32_t ago;
};

// What a node executes in each frame: a function of this process, on the node's own thread, which gets the node's
// `argument` and its job. It returns 0, or a number of its own that says what went wrong: then the graph stops. It must
// not throw. The input callback may also return LAXITY_VX_END.
typedef int32_t (*laxity_vx_kernel)(void *argument, struct laxity_vx_job *job);

// How a graph is executed. All zeros but for `period_ns`: for ever, under SCHED_OTHER.
struct laxity_vx_options {
    // A frame is released so often.
    uint64_t period_ns;
    // One of enum laxity_vx_policy.
    uint32_t policy;
    // For LAXITY_VX_FIFO: the priority of the input callback, 1 to 97.
    uint8_t base_priority;
    // For LAXITY_VX_DEADLINE: the budget of nodes that say nothing; 0: they are refused.
    uint64_t default_budget_ns;
    // For LAXITY_VX_DEADLINE_MEASURED: how many frames, at least 1, and how much is added, in hundredths.
    uint32_t measured_frames;
    uint32_t margin_percent;
    // Replicas of each object: how many frames can be worked on at the same time; 0: the graph's depth.
    uint32_t replicas;
    // When time 0 is, on CLOCK_MONOTONIC; 0: when all threads are ready.
    uint64_t start_ns;
    // The first frame is released so long after time 0.
    uint64_t phase_ns;
    // The graph ends after so many frames; 0: it does not.
    uint64_t frames;
    // No frame is released so long after the first, or later; 0: they are.
    uint64_t duration_ns;
    // The CPUs that threads keep to; NULL: all.
    const uint32_t *cpus;
    size_t cpus_count;
    // What kernels use through laxity_vx_job_gpu, or NULL; kept by the run.
    const struct laxity_device *gpu;
    // Whether all memory of the process is kept in RAM.
    bool lock_memory;
    // How many of its last jobs each node remembers, for traces; 0: 256.
    uint32_t recorder;
};

// One frame, in ns of CLOCK_MONOTONIC.
struct laxity_vx_frame {
    // Its number, from 0.
    uint64_t index;
    // When it was due: by the timer, not when a thread came to it.
    uint64_t release_ns;
    // When the output callback was done with it.
    uint64_t completion_ns;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What `result` means, in a few words that stay there for ever.
const char *laxity_result_text(int32_t result);

// Why the last call of this thread failed that did not return LAXITY_OK; never NULL.
const struct laxity_error *laxity_last_error(void);

// The version of the library, such as "0.1.0".
const char *laxity_version(void);

// Names in `directory`, which must exist; in /dev/shm if it is NULL.
enum laxity_result laxity_registry_new(const char *directory, struct laxity_registry **registry);

// Releases a registry; graphs stay. `*registry` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_registry_release(struct laxity_registry **registry);

// Creates the graph that `spec` describes, and attaches to it. Nobody sees it before it is whole; a graph of this name
// that nobody alive uses is replaced. LAXITY_ERROR_SPEC says why it cannot be, LAXITY_ERROR_EXISTS that it is there.
enum laxity_result laxity_registry_create(const struct laxity_registry *registry,
                                          const struct laxity_spec *spec,
                                          struct laxity_graph **graph);

// Creates the graph that `spec` describes, or attaches to it if it is there already: for processes that all know it
// and start in any order. LAXITY_ERROR_DIFFERENT if a graph of this name is not the same.
enum laxity_result laxity_registry_create_or_attach(const struct laxity_registry *registry,
                                                    const struct laxity_spec *spec,
                                                    struct laxity_graph **graph);

// Attaches to the graph called `name`. If there is none, waits until someone creates it: for `timeout_ns`, not at all
// if that is 0, or for ever with LAXITY_FOREVER; then LAXITY_ERROR_NO_GRAPH.
enum laxity_result laxity_registry_attach(const struct laxity_registry *registry,
                                          const char *name,
                                          uint64_t timeout_ns,
                                          struct laxity_graph **graph);

// Removes graphs that nobody uses any more, as killed processes and power cuts leave them, and says how many they
// were. `removed` may be NULL.
enum laxity_result laxity_registry_gc(const struct laxity_registry *registry,
                                      size_t *removed);

// Begins the description of a graph called `name`.
enum laxity_result laxity_spec_new(const char *name, struct laxity_spec **spec);

// Adds a node. One that no other node leads to (back-edges aside) has a period, in nanoseconds; for all others it is 0
// and follows from their producers.
enum laxity_result laxity_spec_node(struct laxity_spec *spec,
                                    const char *name,
                                    uint64_t period_ns);

// Adds an edge between two nodes that were added before. Edges are numbered from 0 in the order in which they are
// added. `edge` may be NULL, which is as if all of it were zero.
enum laxity_result laxity_spec_edge(struct laxity_spec *spec,
                                    const char *from,
                                    const char *to,
                                    const struct laxity_edge *edge);

// Makes each node of the graph remember its last `jobs`, rounded up to a power of two, for traces and releases; 64 bytes
// each. 256 unless this says otherwise; with 0 the graph cannot be traced, and knows no releases and deadlines.
enum laxity_result laxity_spec_recorder(struct laxity_spec *spec,
                                        uint32_t jobs);

// Gives the node called `node` `bytes` bytes that users keep with it, for every process: see laxity_data_read.
enum laxity_result laxity_spec_node_data(struct laxity_spec *spec,
                                         const char *node,
                                         uint32_t bytes);

// Gives the edge numbered `edge` `bytes` bytes that users keep with it, for every process: see laxity_data_read.
enum laxity_result laxity_spec_edge_data(struct laxity_spec *spec,
                                         size_t edge,
                                         uint32_t bytes);

// Makes the `count` edges numbered `edges` exchange buffers: see laxity_job_swap. Their messages are in memory, and the
// longest of each is of one length.
enum laxity_result laxity_spec_swapping(struct laxity_spec *spec,
                                        const size_t *edges,
                                        size_t count);

// Releases a description; graphs that were made of it stay. `*spec` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_spec_release(struct laxity_spec **spec);

// Begins the description of a graph called `name` that runs once in `period_ns`.
enum laxity_result laxity_pipeline_new(const char *name,
                                       uint64_t period_ns,
                                       struct laxity_pipeline **pipeline);

// Adds an object of `bytes` bytes.
enum laxity_result laxity_pipeline_object(struct laxity_pipeline *pipeline, const char *name, size_t bytes);

// Adds a delay: an object of `bytes` bytes of which the values of the last `depth` jobs can be read, too. Those of jobs
// before the first are `initial`, which is as long as one value, or zeros if it is NULL.
enum laxity_result laxity_pipeline_delay(struct laxity_pipeline *pipeline,
                                         const char *name,
                                         size_t bytes,
                                         uint32_t depth,
                                         const void *initial);

// Adds a node with its `count` parameters, which may be NULL if there are none.
enum laxity_result laxity_pipeline_node(struct laxity_pipeline *pipeline,
                                        const char *name,
                                        const struct laxity_parameter *parameters,
                                        size_t count);

// Adds an edge beyond those that follow from objects: job j of the node `to` waits for job j of the node `from`, and
// gets a message if `edge` says so, of whose fields those about messages count; all others are 0. `edge` may be NULL,
// which is as if all of it were zero. These are the first edges of the graph, in this order.
enum laxity_result laxity_pipeline_edge(struct laxity_pipeline *pipeline,
                                        const char *from,
                                        const char *to,
                                        const struct laxity_edge *edge);

// The number of nodes on the longest path: a rule of thumb for the number of replicas.
enum laxity_result laxity_pipeline_depth(const struct laxity_pipeline *pipeline, uint32_t *depth);

// The least number of replicas with which no job waits for one. `response_times_ns` has for each of the `count` nodes, in
// the order in which they were added, a bound on its response time, from its release on.
//
// LAXITY_ERROR_VALUE if there are more or fewer nodes; LAXITY_ERROR_SPEC says why there is no graph, or no such number.
enum laxity_result laxity_pipeline_replicas_needed(const struct laxity_pipeline *pipeline,
                                                   const uint64_t *response_times_ns,
                                                   size_t count,
                                                   uint32_t *replicas);

// Derives the graph with `replicas` of every object, at least 1, and writes its description to `spec`, to which no node
// or edge can be added. Any number of replicas computes the same; more let more runs of the graph overlap.
// LAXITY_ERROR_SPEC says why it cannot be.
enum laxity_result laxity_pipeline_build(const struct laxity_pipeline *pipeline,
                                         uint32_t replicas,
                                         struct laxity_spec **spec);

// Releases a pipeline; descriptions and graphs that were made of it stay. `*pipeline` is NULL then; if it is already,
// nothing happens.
enum laxity_result laxity_pipeline_release(struct laxity_pipeline **pipeline);

// Lets go of a graph; nodes that were claimed stay claimed, and keep this process attached. `*graph` is NULL then; if
// it is already, nothing happens. The last process to leave takes the graph with it.
enum laxity_result laxity_graph_release(struct laxity_graph **graph);

// Claims the node called `name`, or any that nobody has if it is NULL; one at a time in all processes. After a death
// the node goes on with the job that was begun and not completed.
enum laxity_result laxity_graph_claim(const struct laxity_graph *graph,
                                      const char *name,
                                      struct laxity_node **node);

// Ends the node called `name` from outside, or every node if it is NULL: the next wait of those who have them says so,
// and consumers end when they have used what is there, and what the job brings that is begun.
enum laxity_result laxity_graph_terminate(const struct laxity_graph *graph,
                                          const char *name);

// Says what the node called `name` is doing now.
enum laxity_result laxity_graph_status(const struct laxity_graph *graph,
                                       const char *name,
                                       struct laxity_status *status);

// The number of the first edge from the node called `from` to that called `to`.
enum laxity_result laxity_graph_edge(const struct laxity_graph *graph,
                                     const char *from,
                                     const char *to,
                                     size_t *edge);

// Tokens on an edge that no job has taken.
enum laxity_result laxity_graph_tokens(const struct laxity_graph *graph, size_t edge, uint64_t *tokens);

// Bytes of shared memory that the graph takes.
enum laxity_result laxity_graph_memory(const struct laxity_graph *graph, size_t *bytes);

// The length of what users keep with the node called `node`, or with the edge numbered `edge` if that is NULL: what
// laxity_spec_node_data or laxity_spec_edge_data said.
enum laxity_result laxity_data_length(const struct laxity_graph *graph,
                                      const char *node,
                                      size_t edge,
                                      size_t *length);

// Copies what users keep with the node called `node`, or with the edge numbered `edge` if that is NULL, to `bytes`,
// which is as long: one value, as it was written, never parts of two. `version`, which may be NULL, is how often it was
// written. LAXITY_ERROR_VALUE if `length` is not theirs.
enum laxity_result laxity_data_read(const struct laxity_graph *graph,
                                    const char *node,
                                    size_t edge,
                                    void *bytes,
                                    size_t length,
                                    uint64_t *version);

// Replaces what users keep with the node called `node`, or with the edge numbered `edge` if that is NULL, by `bytes`,
// which is as long. If `version` is not NULL, only if nobody has written since that version, else LAXITY_CHANGED: for
// whoever computes the new value from the old one. LAXITY_ERROR_VALUE if `length` is not theirs.
enum laxity_result laxity_data_write(const struct laxity_graph *graph,
                                     const char *node,
                                     size_t edge,
                                     const void *bytes,
                                     size_t length,
                                     const uint64_t *version);

// Lets go of a node, so that someone else can claim it; in the middle of a job that counts as a loss. `*node` is NULL
// then; if it is already, nothing happens.
enum laxity_result laxity_node_release(struct laxity_node **node);

// Ends a node, and lets go of it: its consumers end when they have used what it produced. `*node` is NULL then; if it
// is already, nothing happens.
enum laxity_result laxity_node_terminate(struct laxity_node **node);

// The name of a node; the text is there as long as the node.
enum laxity_result laxity_node_name(const struct laxity_node *node, const char **name);

// From now on a wait looks for `span_ns` before it suspends, if all that it waits for was last seen on other CPUs: for
// threads that are kept on CPUs of their own. 0 at first.
enum laxity_result laxity_node_spin_for(struct laxity_node *node,
                                        uint64_t span_ns);

// Waits for the next job: for tokens on all edges to the node and room on all rings from it, with one suspension. For
// `timeout_ns`, not at all if that is 0, or for ever with LAXITY_FOREVER.
//
// LAXITY_TIMED_OUT, LAXITY_TERMINATED and LAXITY_LOST say why there is no job; none of them loses a token.
// LAXITY_ERROR_INCOMPLETE if the job before is not complete.
enum laxity_result laxity_node_wait(struct laxity_node *node,
                                    uint64_t timeout_ns,
                                    struct laxity_job **job);

// A descriptor for poll() and event loops: readable unless the last wait timed out and the next one would, too. When it
// is readable call laxity_node_wait with a time-out of 0, as often as you like; the descriptor stays readable until
// that answers LAXITY_TIMED_OUT. At times it is readable for nothing. It belongs to the node, is closed with it, and is
// not to be read from.
enum laxity_result laxity_node_poll_fd(struct laxity_node *node,
                                       int *descriptor);

// The number of a job, from 0.
enum laxity_result laxity_job_index(const struct laxity_job *job, uint64_t *index);

// Whether a former owner of the node had begun the job and not completed it: what it did outside the graph may be done
// already.
enum laxity_result laxity_job_is_resumed(const struct laxity_job *job,
                                         bool *is_resumed);

// Message `number`, from 0, of those that came over `edge`: in place, and there until the job is complete. A
// job sees as many as its threshold says. `length` may be NULL.
enum laxity_result laxity_job_input(const struct laxity_job *job,
                                    size_t edge,
                                    uint32_t number,
                                    const void **message,
                                    size_t *length);

// Message `number`, from 0, of those that go over `edge`: in place, to be written until the job is complete;
// what is in it is undetermined. It is `length` bytes long (which may be NULL), as long as can be, unless
// laxity_job_truncate says less; a message that is never asked for is empty.
enum laxity_result laxity_job_output(struct laxity_job *job,
                                     size_t edge,
                                     uint32_t number,
                                     void **message,
                                     size_t *length);

// Sets the length of a message that goes over `edge`.
enum laxity_result laxity_job_truncate(struct laxity_job *job, size_t edge, uint32_t number, size_t length);

// Swaps message `input_number` of those that came over the edge `input` with message `output_number` of those that go
// over the edge `output`, each with its length and without a copy, however long they are: what came is what goes. Both
// edges are of one group of laxity_spec_swapping.
//
// Pointers to the two messages are swapped, too: the one to what came now leads to what goes, and may be written to. If
// the job is killed before it completes it is begun again with the message where it came from, and what was changed in
// it may be half changed: see laxity_job_is_resumed.
enum laxity_result laxity_job_swap(struct laxity_job *job,
                                   size_t input,
                                   uint32_t input_number,
                                   size_t output,
                                   uint32_t output_number);

// Completes a job: what it read is gone, and what it wrote and its tokens are there for its consumers, all at once.
// Pointers to its messages are not valid any more.
enum laxity_result laxity_job_complete(struct laxity_job *job);

// The object called `object`, which the job's node reads, as it was `ago` jobs ago (0: what this job of the graph
// computes): in place, and there until the job is complete. `length` may be NULL.
enum laxity_result laxity_job_read(const struct laxity_job *job,
                                   const char *object,
                                   uint32_t ago,
                                   const void **bytes,
                                   size_t *length);

// The object called `object`, which the job's node writes, in which anything may be, or changes: in place, until the
// job is complete. `length` may be NULL. If laxity_job_is_resumed, what is changed may be half changed already.
enum laxity_result laxity_job_write(struct laxity_job *job,
                                    const char *object,
                                    void **bytes,
                                    size_t *length);

// Settles that job 0 of each source arrives at `start_ns` (of CLOCK_MONOTONIC; 0 is now) and its phase, and job j so
// many periods later. The first who says so is right; `settled_ns`, which may be NULL, is what is settled.
enum laxity_result laxity_graph_start(const struct laxity_graph *graph,
                                      uint64_t start_ns,
                                      uint64_t *settled_ns);

// From now on jobs are released as `releasing` says, one of enum laxity_releasing. The first source for which that is
// LAXITY_RELEASING_ON_TIME starts the graph now, if nobody has. LAXITY_ERROR_NO_RECORDER if the graph knows no releases.
enum laxity_result laxity_node_set_releasing(struct laxity_node *node,
                                             uint32_t releasing);

// From now on the calling thread runs the node by SCHED_FIFO: a source has the priority `base`, and others the more, the
// deeper they are in the graph; at most 97. While the node wakes several consumers it has the highest of their
// priorities. The thread stays scheduled so when it lets go of the node.
//
// LAXITY_ERROR_SCHEDULE if Linux refuses, and the thread runs as before.
enum laxity_result laxity_node_schedule_fifo(struct laxity_node *node,
                                             uint8_t base);

// From now on the calling thread runs the node by SCHED_DEADLINE: Linux gives it `runtime_ns` in each period of the node,
// and more where others leave some of theirs, within its relative deadline. The thread stays scheduled so when it lets go
// of the node.
//
// LAXITY_ERROR_SCHEDULE if Linux refuses, and the thread runs as before: without CAP_SYS_NICE, with a runtime beyond
// the deadline, or if the CPUs are promised to others.
enum laxity_result laxity_node_schedule_deadline(struct laxity_node *node,
                                                 uint64_t runtime_ns);

// When a job was released, and when it is due, both of CLOCK_MONOTONIC; either may be NULL. LAXITY_ERROR_NO_RECORDER if
// the graph knows no releases.
enum laxity_result laxity_job_times(const struct laxity_job *job,
                                    uint64_t *release_ns,
                                    uint64_t *deadline_ns);

// Begins to record the graph in the trace file `path`, which is replaced, from the oldest jobs that the graph
// remembers. To be collected from then on, and finished. LAXITY_ERROR_NO_RECORDER if the graph remembers none.
enum laxity_result laxity_graph_record(const struct laxity_graph *graph,
                                       const char *path,
                                       struct laxity_recording **recording);

// Writes what happened since the last time, but for the last millisecond: to be called again before any node has as many
// jobs as the graph remembers. `collected`, which may be NULL, is about the whole recording.
enum laxity_result laxity_recording_collect(struct laxity_recording *recording,
                                            struct laxity_collected *collected);

// Writes all that happened up to now, closes the file and releases the recording. `*recording` is NULL then, also if
// the file could not be written (LAXITY_ERROR_FILE); if it is already, nothing happens. `collected` may be NULL.
enum laxity_result laxity_recording_finish(struct laxity_recording **recording,
                                           struct laxity_collected *collected);

// Creates the arbitration called `name` in `directory` (NULL: /dev/shm), or attaches to it if it is there already: for
// processes that all know its configuration and start in any order. LAXITY_ERROR_DIFFERENT if it is configured
// otherwise, LAXITY_ERROR_CONFIG if it cannot be. It ends with the last process that uses it.
enum laxity_result laxity_gpus_create_or_attach(const char *directory,
                                                const char *name,
                                                const struct laxity_gpu_config *config,
                                                struct laxity_gpus **gpus);

// Attaches to the arbitration called `name` in `directory` (NULL: /dev/shm), however it is configured.
// LAXITY_ERROR_NO_ARBITRATION if there is none.
enum laxity_result laxity_gpus_attach(const char *directory, const char *name, struct laxity_gpus **gpus);

// Releases the handle of an arbitration; its clients go on. `*gpus` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_gpus_release(struct laxity_gpus **gpus);

// Whether Linux lets this process raise threads, so that holders really run at the priority that they inherit. If not,
// grants are in the right order all the same.
enum laxity_result laxity_gpus_inherits(const struct laxity_gpus *gpus,
                                        bool *inherits);

// Who holds and waits for what, as text for people: at most `size` bytes of it to `buffer`, the last of them NUL, and
// to `length` how many it has without that. `buffer` may be NULL if `size` is 0, and `length` may be NULL.
enum laxity_result laxity_gpus_text(const struct laxity_gpus *gpus,
                                    char *buffer,
                                    size_t size,
                                    size_t *length);

// Removes arbitrations in `directory` (NULL: /dev/shm) all of whose processes were killed, and says how many they
// were. `removed` may be NULL.
enum laxity_result laxity_gpus_gc(const char *directory,
                                  size_t *removed);

// Registers this thread under a name for those who watch. `priority` says how urgent it is among those that wait: 1 to
// 99 as of SCHED_FIFO, the larger the more urgent; 0 means that `deadline_ns` on CLOCK_MONOTONIC does, the earlier the
// more urgent, or nothing if that is 0, too.
enum laxity_result laxity_gpus_register(const struct laxity_gpus *gpus,
                                        const char *name,
                                        uint8_t priority,
                                        uint64_t deadline_ns,
                                        struct laxity_gpu_client **client);

// This thread is as urgent as this from now on, as for laxity_gpus_register: a job with another deadline begins. To be
// called without a token.
enum laxity_result laxity_gpu_client_rebase(struct laxity_gpu_client *client,
                                            uint8_t priority,
                                            uint64_t deadline_ns);

// Lets go of whatever the client holds, and forgets the thread. `*client` is NULL then; if it is already, nothing
// happens.
enum laxity_result laxity_gpu_client_release(struct laxity_gpu_client **client);

// Waits for a token of GPU `only`, or of any if that is negative: for `timeout_ns`, not at all if that is 0, or for
// ever with LAXITY_FOREVER. Writes to `gpu`, which may be NULL, which GPU the job may use.
enum laxity_result laxity_gpu_token(struct laxity_gpu_client *client,
                                    int32_t only,
                                    uint64_t timeout_ns,
                                    uint32_t *gpu);

// The job is over: lets go of the token, and before that of all engines.
enum laxity_result laxity_gpu_token_release(struct laxity_gpu_client *client);

// Waits for an engine of the GPU whose token the client holds: one of enum laxity_engine. Time-outs are as for tokens.
enum laxity_result laxity_gpu_engine(struct laxity_gpu_client *client,
                                     uint32_t engine,
                                     uint64_t timeout_ns);

// Waits for the engines that a copy from GPU `from` to the token's occupies, in the order that is the same for all.
// Time-outs are as for tokens, for each of the two.
enum laxity_result laxity_gpu_peer_copy(struct laxity_gpu_client *client,
                                        uint32_t from,
                                        uint64_t timeout_ns);

// Waits for the engine that copies in the direction of `engine`, and writes to `length` how many of `bytes` bytes to
// copy before laxity_gpu_engines_release: a chunk, so that a more urgent copy waits no longer than that. Called until
// nothing is left to copy. Time-outs are as for tokens.
enum laxity_result laxity_gpu_chunk(struct laxity_gpu_client *client,
                                    uint32_t engine,
                                    uint64_t bytes,
                                    uint64_t timeout_ns,
                                    uint64_t *length);

// Lets go of all engines that the client holds.
enum laxity_result laxity_gpu_engines_release(struct laxity_gpu_client *client);

// Opens soft GPUs, whose servers are started if there are none. `gpus` is the arbitration that says who uses them when,
// which this keeps; with NULL operations are served first come, first served.
enum laxity_result laxity_device_open(const struct laxity_device_config *config,
                                      const struct laxity_gpus *gpus,
                                      struct laxity_device **device);

// Releases the handle of a device; its threads and buffers go on. `*device` is NULL then; if it is already, nothing
// happens.
enum laxity_result laxity_device_release(struct laxity_device **device);

// `size` bytes of the memory of GPU `gpu`, which are zero. LAXITY_ERROR_MEMORY if it has not as many in one piece, or this
// machine has not as many left for it.
enum laxity_result laxity_buffer_alloc(const struct laxity_device *device,
                                       uint32_t gpu,
                                       size_t size,
                                       struct laxity_buffer **buffer);

// Releases the handle of a buffer, whose memory is free once the last operation that uses it is complete. `*buffer` is
// NULL then; if it is already, nothing happens.
enum laxity_result laxity_buffer_release(struct laxity_buffer **buffer);

// Has this thread use the device under a name of 1 to 64 bytes, which traces have. `priority` and `deadline_ns` say how
// urgent it is, as for laxity_gpus_register, until a job says otherwise.
enum laxity_result laxity_device_register(const struct laxity_device *device,
                                          const char *name,
                                          uint8_t priority,
                                          uint64_t deadline_ns,
                                          struct laxity_device_thread **thread);

// Lets go of what the thread holds, and forgets it. `*thread` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_device_thread_release(struct laxity_device_thread **thread);

// A job begins, number `number` of its task as traces have it, as urgent as `priority` and `deadline_ns` say. One that
// has not ended ends now. Linux is to schedule the thread as it did when it registered.
enum laxity_result laxity_device_begin_job(struct laxity_device_thread *thread,
                                           uint32_t number,
                                           uint8_t priority,
                                           uint64_t deadline_ns);

// The job is over: lets go of the token.
enum laxity_result laxity_device_end_job(struct laxity_device_thread *thread);

// The job needs no GPU any more, though it goes on: lets go of the token early. The next operation takes another.
enum laxity_result laxity_device_release_token(struct laxity_device_thread *thread);

// Whether the thread holds a token.
enum laxity_result laxity_device_holds_token(struct laxity_device_thread *thread, bool *holds);

// Takes a token now, if there is an arbitration and the thread holds none, rather than with the first operation. Writes
// to `gpu`, which may be NULL, which GPU the job uses.
enum laxity_result laxity_device_acquire_token(struct laxity_device_thread *thread,
                                               uint32_t *gpu);

// Has jobs of the thread use GPU `gpu` from now on, or, if that is negative, whichever the arbitration gives them. A
// buffer always has its own GPU used.
enum laxity_result laxity_device_use_gpu(struct laxity_device_thread *thread,
                                         int32_t gpu);

// Copies `size` bytes from `bytes` to `offset` of `buffer`, chunk by chunk if the arbitration says so, and returns when
// the GPU has done it.
enum laxity_result laxity_device_copy_in(struct laxity_device_thread *thread,
                                         const struct laxity_buffer *buffer,
                                         size_t offset,
                                         const void *bytes,
                                         size_t size);

// Copies `size` bytes from `offset` of `buffer` to `bytes`, chunk by chunk if the arbitration says so, and returns when
// the GPU has done it.
enum laxity_result laxity_device_copy_out(struct laxity_device_thread *thread,
                                          const struct laxity_buffer *buffer,
                                          size_t offset,
                                          void *bytes,
                                          size_t size);

// Occupies the copy engine of a direction, LAXITY_ENGINE_COPY_IN or LAXITY_ENGINE_COPY_OUT, for as long as a copy of
// `size` bytes takes by `copy_rate`. Nothing is copied, and no CPU is used meanwhile.
enum laxity_result laxity_device_copy_timed(struct laxity_device_thread *thread,
                                            uint32_t direction,
                                            size_t size);

// Occupies the execution engine for `duration_ns`. No CPU is used meanwhile.
enum laxity_result laxity_device_launch_timed(struct laxity_device_thread *thread, uint64_t duration_ns);

// What is told when a job of this client has exhausted its budget. Called by the client's thread; any thread uses the
// result.
enum laxity_result laxity_gpu_client_budget(const struct laxity_gpu_client *client,
                                            struct laxity_budget **budget);

// Whether the budget of the client's job is exhausted. One that holds a token then had best let go of it. Called by the
// client's thread.
enum laxity_result laxity_gpu_client_is_exhausted(const struct laxity_gpu_client *client,
                                                  bool *is_exhausted);

// What is told when a job of this thread has exhausted its budget; NULL without an arbitration. A job that holds a token
// then has its next operation return LAXITY_ERROR_EXHAUSTED, after what was under way is complete, and lets go; one that
// holds none waits for a token, and for budget. Called by the thread; any thread uses the result.
enum laxity_result laxity_device_budget(struct laxity_device_thread *thread,
                                        struct laxity_budget **budget);

// The job has no budget any more: its request is withdrawn, though its thread goes on waiting; if it holds a token, the
// next in the queue is admitted in its place. Nothing happens if that is known, or the client is released.
enum laxity_result laxity_budget_exhaust(const struct laxity_budget *budget);

// The job has budget again: it asks for what it asked for, behind those who have meanwhile. A token that it still holds
// is not given back its place in the queue. Nothing happens if that is known, or the client is released.
enum laxity_result laxity_budget_replenish(const struct laxity_budget *budget);

// Releases the handle of a budget; what was said of it stays so. `*budget` is NULL then; if it is already, nothing
// happens.
enum laxity_result laxity_budget_release(struct laxity_budget **budget);

// Runs a GPU kernel, and returns when it has returned; the execution engine is busy for `duration_ns` at least.
// `argument` is the kernel's. LAXITY_ERROR_KERNEL with the number that it returned if that is not 0.
enum laxity_result laxity_device_launch(struct laxity_device_thread *thread,
                                        laxity_kernel kernel,
                                        void *argument,
                                        uint64_t duration_ns);

// `size` bytes from `offset` of `buffer` on, to read until the kernel returns. LAXITY_ERROR_RACE if somebody writes
// there, this kernel included.
enum laxity_result laxity_view_read(const struct laxity_view *view,
                                    const struct laxity_buffer *buffer,
                                    size_t offset,
                                    size_t size,
                                    const void **bytes);

// `size` bytes from `offset` of `buffer` on, to read and write until the kernel returns. LAXITY_ERROR_RACE if somebody
// uses them, this kernel included.
enum laxity_result laxity_view_write(const struct laxity_view *view,
                                     const struct laxity_buffer *buffer,
                                     size_t offset,
                                     size_t size,
                                     void **bytes);

// Begins the description of a graph called `name`, which it has in `registry` while it runs; in the default one if that is
// NULL. While it runs no other one of this name can.
enum laxity_result laxity_vx_graph_new(const struct laxity_registry *registry,
                                       const char *name,
                                       struct laxity_vx_graph **graph);

// Adds an object of `bytes` bytes, or, if `slots` is not 1, a delay of so many: slot 0 is written in this job, slot k was k
// jobs ago, up to `slots` - 1. What no job wrote is `initial`, which is as long, or zeros if it is NULL. `object` is its
// number.
enum laxity_result laxity_vx_graph_object(struct laxity_vx_graph *graph,
                                          const char *name,
                                          size_t bytes,
                                          uint32_t slots,
                                          const void *initial,
                                          uint32_t *object);

// As laxity_vx_graph_object, for an array of up to `capacity` items of `item_bytes` bytes: how many there are is in its
// first 8 bytes, and the items begin at LAXITY_VX_ARRAY_ITEMS. What a node gets to write is empty at first.
enum laxity_result laxity_vx_graph_array(struct laxity_vx_graph *graph,
                                         const char *name,
                                         size_t item_bytes,
                                         size_t capacity,
                                         uint32_t slots,
                                         const void *initial,
                                         uint32_t *object);

// Adds a node with its `count` parameters, which may be NULL if there are none. Nodes that use one object do so in the
// order in which they are added, the one that writes it first. `budget_ns` is the CPU time that a job needs at most, for
// LAXITY_VX_DEADLINE; 0 says nothing. `kernel` and `argument` are used until the graph, verified, is released.
enum laxity_result laxity_vx_graph_node(struct laxity_vx_graph *graph,
                                        const char *name,
                                        const struct laxity_vx_parameter *parameters,
                                        size_t count,
                                        laxity_vx_kernel kernel,
                                        void *argument,
                                        uint64_t budget_ns);

// Sets what is called at the release of each frame, before all nodes: it may write objects that are the graph's input, and
// returns LAXITY_VX_END if there is no frame. Otherwise as laxity_vx_graph_node.
enum laxity_result laxity_vx_graph_input(struct laxity_vx_graph *graph,
                                         const struct laxity_vx_parameter *parameters,
                                         size_t count,
                                         laxity_vx_kernel kernel,
                                         void *argument,
                                         uint64_t budget_ns);

// Sets what is called when all nodes are done with a frame; it may read objects that are the graph's output. Otherwise as
// laxity_vx_graph_node.
enum laxity_result laxity_vx_graph_output(struct laxity_vx_graph *graph,
                                          const struct laxity_vx_parameter *parameters,
                                          size_t count,
                                          laxity_vx_kernel kernel,
                                          void *argument,
                                          uint64_t budget_ns);

// Derives who waits for whom. Releases the description, also if the graph cannot be executed (LAXITY_ERROR_VERIFY, with the
// name of OpenVX's status in the message): `*graph` is NULL then.
enum laxity_result laxity_vx_graph_verify(struct laxity_vx_graph **graph,
                                          struct laxity_vx_verified **verified);

// Releases a description. `*graph` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_vx_graph_release(struct laxity_vx_graph **graph);

// The number of nodes on the longest path: by rule of thumb the number of replicas.
enum laxity_result laxity_vx_verified_depth(const struct laxity_vx_verified *verified, uint32_t *depth);

// The graph in the language of Graphviz, back-edges dashed; the text is there as long as the verified graph.
enum laxity_result laxity_vx_verified_dot(const struct laxity_vx_verified *verified, const char **dot);

// Releases a verified graph; runs of it go on, and so the arguments of its kernels are used until these are released, too.
// `*verified` is NULL then; if it is already, nothing happens.
enum laxity_result laxity_vx_verified_release(struct laxity_vx_verified **verified);

// The frame, from 0.
enum laxity_result laxity_vx_job_index(const struct laxity_vx_job *job, uint64_t *index);

// What the job's deadline is counted from, and the deadline, both of CLOCK_MONOTONIC; either may be NULL.
enum laxity_result laxity_vx_job_times(const struct laxity_vx_job *job,
                                       uint64_t *release_ns,
                                       uint64_t *deadline_ns);

// An object that is an input of the node, or a slot of a delay, as it was so many jobs `ago`: in place, and there until the
// kernel returns. `length` may be NULL.
enum laxity_result laxity_vx_job_read(const struct laxity_vx_job *job,
                                      uint32_t object,
                                      uint32_t ago,
                                      const void **bytes,
                                      size_t *length);

// An object that is an output of the node, in which anything may be (only arrays are empty), or one that it changes: in
// place, until the kernel returns. `length` may be NULL.
enum laxity_result laxity_vx_job_write(struct laxity_vx_job *job,
                                       uint32_t object,
                                       void **bytes,
                                       size_t *length);

// The GPU as the node's thread uses it: for copies and launches until the kernel returns. It belongs to the job, and is not
// released. The first operation takes a token if there is an arbitration; the end of the job lets it go, or, earlier,
// laxity_device_release_token. LAXITY_ERROR_NO_GPU if the graph was spawned without one.
enum laxity_result laxity_vx_job_gpu(struct laxity_vx_job *job,
                                     struct laxity_device_thread **thread);

// Says why the kernel is about to fail: what it returns must not be 0, and who waits for the graph gets this text.
enum laxity_result laxity_vx_job_fail(struct laxity_vx_job *job,
                                      const char *why);

// Executes the graph periodically: a thread a node, consecutive frames at the same time. Returns when all threads are ready
// and the first release is settled. If it fails no thread is left, and it can be tried again with other options.
enum laxity_result laxity_vx_spawn(const struct laxity_vx_verified *verified,
                                   const struct laxity_vx_options *options,
                                   struct laxity_vx_run **run);

// Releases no more frames. Those that were begun are completed. Does not wait for that.
enum laxity_result laxity_vx_run_stop(struct laxity_vx_run *run);

// Ends as soon as kernels return. Frames that were begun are given up. Does not wait for that.
enum laxity_result laxity_vx_run_terminate(struct laxity_vx_run *run);

// Waits until the graph has ended, `timeout_ns` at most (LAXITY_TIMED_OUT), or for ever with LAXITY_FOREVER.
// LAXITY_ERROR_FAILED says which node has failed, and how, if one did.
enum laxity_result laxity_vx_run_wait(const struct laxity_vx_run *run, uint64_t timeout_ns);

// Waits until `frames` frames are completed, or the graph has ended, `timeout_ns` at most, or for ever with LAXITY_FOREVER.
// `completed` is how many are, whatever came first.
enum laxity_result laxity_vx_run_wait_for_frames(const struct laxity_vx_run *run,
                                                 uint64_t frames,
                                                 uint64_t timeout_ns,
                                                 uint64_t *completed);

// How many frames were begun, and how many are completed; either may be NULL.
enum laxity_result laxity_vx_run_counts(const struct laxity_vx_run *run,
                                        uint64_t *begun,
                                        uint64_t *completed);

// Writes the last completed frames to `frames`, the oldest first, as many as there are or, if that is less, `capacity`;
// `count` is how many. The graph remembers 2^20, or as many as it was to execute.
enum laxity_result laxity_vx_run_frames(const struct laxity_vx_run *run,
                                        struct laxity_vx_frame *frames,
                                        size_t capacity,
                                        size_t *count);

// The graph as other processes see it: to be recorded, and asked for the state of nodes. Whoever got it releases it, and it
// keeps the graph's memory and name.
enum laxity_result laxity_vx_run_graph(const struct laxity_vx_run *run,
                                       struct laxity_graph **graph);

// Terminates a run that has not ended, and releases it: its threads have ended then. `*run` is NULL then; if it is already,
// nothing happens.
enum laxity_result laxity_vx_run_release(struct laxity_vx_run **run);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LAXITY_H */
