// The stabilizer as a live graph: each node is a thread, and consecutive frames are worked on at the same time.

#pragma once

#include <optional>

#include "graph.h"

// How Linux schedules the threads of the nodes.
struct Scheduling {
    enum class Policy { Other, Fifo, Deadline } policy = Policy::Other;
    // Of the first node under Fifo; others have the more, the deeper they are in the graph.
    uint8_t base_priority = 1;
    // Of each node under Deadline: what it may run in a period.
    std::vector<uint64_t> runtimes_ns = {};
};

struct PipelineSettings {
    // Time from one frame to the next.
    uint64_t period_ns;
    // On CLOCK_MONOTONIC: job j of the first node is not run before `start_ns` and j periods; otherwise, as soon as it
    // can be.
    std::optional<uint64_t> start_ns = {};
    // On CLOCK_MONOTONIC: the first node begins no job from then on. What was begun is finished.
    uint64_t end_ns = UINT64_MAX;
    Scheduling scheduling = {};
    // How many runs of the graph may overlap; 0: as many as there are nodes on its longest path.
    uint32_t replicas = 0;
    // Nodes pause now and then, before and behind their work: at random, mostly below a millisecond, at most 20.
    std::optional<uint64_t> jitter_seed = {};
};

struct PipelineRun {
    uint32_t replicas;
    // When the first node saw that there is no more, on CLOCK_MONOTONIC.
    uint64_t source_end_ns;
};

// Runs the graph until its source has no more. Throws what the first node that
// failed has thrown, or std::runtime_error with what Laxity says.
PipelineRun run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log);
