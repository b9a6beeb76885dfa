// What is written down about a run. Every column has one writer: nodes may run at the same time.

#pragma once

#include <string>

#include "clock.h"
#include "data.h"

// By job, how long a node took in microseconds: until it was done, and on a CPU.
struct NodeTimes {
    std::vector<double> us, cpu_us;

    void add(const Stopwatch &stopwatch)
    {
        us.push_back(stopwatch.us());
        cpu_us.push_back(stopwatch.cpu_us());
    }
};

struct Log {
    // For each node of the graph.
    std::vector<NodeTimes> node_times;
    // By job.
    std::vector<Motion> motions;
    // By job: of the frame LATENCY before.
    std::vector<Matrix> corrections;
    // By frame: of the stabilized image.
    std::vector<uint64_t> hashes;
    // By job of a live graph, in nanoseconds on CLOCK_MONOTONIC: when its first node was released, and when its last
    // one was done.
    std::vector<uint64_t> releases_ns, completions_ns;

    // Memory for so many jobs, so that none is asked for while they run.
    void reserve(size_t jobs);
};

// One line a frame: hash, features found and in agreement, the motion from the frame before, the correction, and how
// long each node took. Throws std::runtime_error if it cannot be written.
void write_frames(const std::string &file, const Log &log, const std::vector<std::string> &nodes);

// One line a job: when it was released and when it was complete, in whole microseconds.
void write_times(const std::string &file, const Log &log);

// One line a frame: where it shows what the clip has at a point, by rows.
void write_path(const std::string &file, const std::vector<cv::Matx33d> &path);
