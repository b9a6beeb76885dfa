// The stabilizer as a live graph, by Laxity's OpenVX: each node is a thread, and consecutive frames are worked on at
// the same time.

#pragma once

#include <atomic>
#include <optional>

#include "gpu.h"
#include "graph.h"

// How the threads of the nodes are scheduled.
struct Scheduling {
    enum class Policy { Other, Fifo, Deadline, Laxity } policy = Policy::Other;
    // Of the first node under Fifo; others have the more, the deeper they are in the graph.
    uint8_t base_priority = 1;
    // Of each node under Deadline: what it may run in a period.
    std::vector<uint64_t> runtimes_ns = {};
    // Under Laxity's own scheduler.
    std::optional<SystemSettings> system = {};
    // Where its trace is written; if empty, nowhere.
    std::string trace = {};
};

struct PipelineSettings {
    // Whether frames are released once in a period; otherwise they come as soon as there is room.
    bool is_in_real_time = false;
    uint64_t period_ns = 0;
    // When the first one is, on CLOCK_MONOTONIC; otherwise when all threads are ready.
    std::optional<uint64_t> start_ns = {};
    // The first node begins no job so long after the start, or later. Begun jobs are finished.
    uint64_t span_ns = UINT64_MAX;
    Scheduling scheduling = {};
    // Otherwise the CPU does the work of nodes for a GPU, too.
    std::optional<GpuSettings> gpu = {};
    // How many runs of the graph may overlap; 0: as many as there are nodes on its longest path.
    uint32_t replicas = 0;
    // In real time: becomes true when the source is to end.
    const std::atomic<bool> *stop = nullptr;
    // Nodes pause now and then, before and behind their work: at random, mostly below a millisecond, at most 20.
    std::optional<uint64_t> jitter_seed = {};
};

struct PipelineRun {
    uint32_t replicas;
    // On CLOCK_MONOTONIC: when the first job was released, and when the first node saw that there is no more.
    uint64_t start_ns, source_end_ns;
    // From the start to the end, and what threads of this process were on CPUs.
    double seconds, cpu_seconds;
    // In real time memory is, where Linux permits it.
    bool is_memory_locked;
};

// Runs the graph until its source has no more. Throws laxity::Error, which names the node that failed, if one did, with
// what that has thrown.
PipelineRun run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log);
