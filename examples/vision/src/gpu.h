// A soft GPU for the graph's work: objects that a node for a GPU uses are in its memory, where its kernels work on
// them; nodes for a CPU copy what they read out, and what they write in.

#pragma once

#include <chrono>
#include <laxity/device.hpp>
#include <map>
#include <set>
#include <string>

#include "graph.h"
#include "system.h"

struct GpuSettings {
    // Of the soft GPU, which is started if there is none.
    std::string name;
    // The arbitration that says which job uses it when; if empty, first come, first served.
    std::string arbitration;
    // A node for a CPU lets go of the token when it has copied what it reads, not when its job ends.
    bool releases_early = false;
    // For each node for a GPU, in their order, for how long a kernel occupies the execution engine; copies take what the
    // engines' rate says. The threads of the nodes do all of the work then. If empty, the GPU's kernels do it.
    std::vector<uint64_t> kernels_ns = {};
};

// The nodes for a GPU.
size_t kernels(const Graph &graph);

// Names of the objects that a node for a GPU uses.
std::set<std::string> used_by_gpu(const Graph &graph);

class Gpu
{
public:
    // The values of an object: each job writes the next, and begins only when no job needs what was there before. The
    // live graph sees to that.
    struct Ring {
        size_t bytes;
        std::vector<laxity::Buffer> values;

        const laxity::Buffer &of(uint64_t job, uint32_t ago) const
        {
            // As in sequential.cpp: what is before the first job is all the same.
            return values[(job + values.size() - ago) % values.size()];
        }
    };

    // With memory for these, of which `replicas` jobs of the graph may use their own at a time, unless operations only take
    // time. `system`, if there is one, schedules the threads that use it. Throws laxity::Error.
    Gpu(const GpuSettings &settings, const Graph &graph, uint32_t replicas, const System &system,
        const SystemSettings *scheduling);

    const laxity::Device &device() const { return device_; }
    bool releases_early() const { return releases_early_; }
    bool is_timed() const { return is_timed_; }

    // How long the kernel of a node takes, if operations only take time.
    std::chrono::nanoseconds kernel(const Node &node) const;

    // The object of that name; null if it is not in its memory.
    const Ring *ring(const std::string &object) const;

private:
    void allocate(const Object &object, uint32_t replicas, const laxity::Gpu &thread);

    laxity::Handle<laxity_gpus, laxity_gpus_release> arbitration_;
    laxity::Device device_;
    bool releases_early_;
    bool is_timed_;
    std::map<std::string, std::chrono::nanoseconds> kernels_;
    std::map<std::string, Ring> rings_;
};

// A node, as the GPU carries it out, or as it gets from the GPU and gives to it.
class GpuNode
{
public:
    // Both are there as long as this is.
    GpuNode(const Gpu &gpu, const Node &node);

    // Does the node's work, as job `job`. `addresses` has those objects that are not in the GPU's memory, in the order
    // of the node's accesses. Returns how long a CPU worked, in microseconds.
    double run(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses);

private:
    // An access to what is in the GPU's memory.
    struct Parameter {
        size_t access;
        bool is_write;
        uint32_t ago;
        const Gpu::Ring *ring;
        // For a node for a CPU: its own copy.
        std::vector<uint8_t> copy;
    };

    double launch(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses) const;
    double work_and_occupy(const laxity::Gpu &thread, std::vector<void *> addresses) const;
    double work(const laxity::Gpu &thread, uint64_t job, std::vector<void *> addresses);

    const Node &node_;
    bool releases_early_;
    bool is_timed_;
    std::chrono::nanoseconds kernel_;
    // Bytes that a node for a CPU copies out before its work, and in behind it, where operations only take time.
    std::vector<size_t> copies_out_, copies_in_;
    std::vector<Parameter> parameters_;
};
