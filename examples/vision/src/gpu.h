// A soft GPU for the graph's work: objects that a node for a GPU uses are in its memory, where its kernels work on
// them; nodes for a CPU copy what they read out, and what they write in.

#pragma once

#include <map>
#include <set>
#include <string>

#include "graph.h"
#include "laxity_handle.h"

struct GpuSettings {
    // Of the soft GPU, which is started if there is none.
    std::string name;
    // The arbitration that says who uses it when; if empty, whoever comes first.
    std::string arbitration;
    // A node for a CPU lets go of the token when it has copied what it reads, not when its job ends.
    bool releases_early = false;
};

// Names of the objects that are in its memory.
std::set<std::string> used_by_gpu(const Graph &graph);

class Gpu
{
public:
    // With memory for these, of which `replicas` jobs of the graph may use their own at a time. `graph` is there
    // as long as this is. Throws std::runtime_error with what Laxity says.
    Gpu(const GpuSettings &settings, const Graph &graph, uint32_t replicas);

private:
    friend class GpuThread;

    using Buffer = Handle<laxity_buffer, laxity_buffer_release>;

    // The values of an object: each job writes the next, and begins only when nobody needs what was there before. That
    // is seen to by the live graph.
    struct Ring {
        size_t bytes;
        std::vector<Buffer> values;

        laxity_buffer *of(uint64_t job, uint32_t ago) const
        {
            // As in sequential.cpp: what is before the first job is all the same.
            return values[(job + values.size() - ago) % values.size()];
        }
    };

    void open(const GpuSettings &settings);
    void allocate(const Object &object, uint32_t replicas, laxity_device_thread *thread);

    bool releases_early_;
    Handle<laxity_gpus, laxity_gpus_release> arbitration_;
    Handle<laxity_device, laxity_device_release> device_;
    std::map<std::string, Ring> rings_;
};

// The GPU, as the thread of a node uses it.
class GpuThread
{
public:
    // For the calling thread. Under SCHED_FIFO it is as urgent as its priority says, otherwise as its deadline does.
    GpuThread(const Gpu &gpu, const Node &node);

    // Does the node's work, as job `job` that is due at `deadline_ns`. `addresses` has those objects that are not in
    // the GPU's memory, in the order of the node's accesses. Returns how long a CPU worked, in microseconds.
    double run(uint64_t job, uint64_t deadline_ns, std::vector<void *> addresses);

private:
    // An access to what is in the GPU's memory.
    struct Parameter {
        size_t access;
        const Gpu::Ring *ring;
        // For a node for a CPU: its own copy.
        std::vector<uint8_t> copy;
    };

    double launch(uint64_t job, std::vector<void *> addresses);
    double work(uint64_t job, std::vector<void *> addresses);

    const Gpu &gpu_;
    const Node &node_;
    uint8_t priority_;
    std::vector<Parameter> parameters_;
    Handle<laxity_device_thread, laxity_device_thread_release> thread_;
};
