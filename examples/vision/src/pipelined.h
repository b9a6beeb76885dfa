// The stabilizer as a live graph: each node is a thread, and consecutive frames are worked on at the same time.

#pragma once

#include <optional>

#include "graph.h"

struct PipelineSettings {
    // Frames a second.
    double rate;
    // How many runs of the graph may overlap; 0: as many as there are nodes on its longest path.
    uint32_t replicas = 0;
    // Nodes pause now and then, before and behind their work: at random, mostly below a millisecond, at most 20.
    std::optional<uint64_t> jitter_seed = {};
};

// Runs the graph until its source has no more, and returns the number of replicas. Throws what the first node that
// failed has thrown, or std::runtime_error with what Laxity says.
uint32_t run_pipelined(const Graph &graph, const PipelineSettings &settings, Log &log);
