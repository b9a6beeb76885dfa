// What is said about a run when it is over.

#pragma once

#include "graph.h"

struct Summary {
    cv::Size image;
    // How it was run, in words.
    std::string how;
    bool was_interrupted;
    // Frames that should have come out, and did. Unless time was up for some the two are the same.
    uint64_t expected, completed;
    // Elapsed, and those on CPUs of this process.
    double seconds, cpu_seconds;
    bool is_memory_locked;
};

// For people, and for programs: one object of JSON.
void print_text(const Summary &summary, const Graph &graph, const Log &log);
void print_json(const Summary &summary, const Graph &graph, const Log &log);
