// What is said about a run when it is over.

#pragma once

#include "graph.h"

struct Summary {
    cv::Size image;
    // How it was run, in words.
    std::string how = {};
    bool was_interrupted = false;
    // Frames that should have come out, and did. Unless time was up for some the two are the same.
    uint64_t expected = 0, completed = 0;
    // From the start on: elapsed, and those of threads of this process on CPUs.
    double seconds = 0, cpu_seconds = 0;
    bool is_memory_locked = false;
};

// For people, and for programs: one object of JSON.
void print_text(const Summary &summary, const Graph &graph, const Log &log);
void print_json(const Summary &summary, const Graph &graph, const Log &log);
