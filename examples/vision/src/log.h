// What is written down about a run. Every column has one writer: nodes may run at the same time.

#pragma once

#include <string>

#include "data.h"

struct Log {
    // For each node of the graph, by job: how long it took, in microseconds.
    std::vector<std::vector<double>> node_us;
    // By job.
    std::vector<Motion> motions;
    // By job: of the frame LATENCY before.
    std::vector<Matrix> corrections;
    // By frame: of the stabilized image.
    std::vector<uint64_t> hashes;
};

// One line a frame: hash, features found and in agreement, the motion from the frame before, the correction, and how
// long each node took. Throws std::runtime_error if it cannot be written.
void write_frames(const std::string &file, const Log &log, const std::vector<std::string> &nodes);

// One line a frame: where it shows what the clip has at a point, by rows.
void write_path(const std::string &file, const std::vector<cv::Matx33d> &path);
