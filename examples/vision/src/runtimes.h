// What to reserve for the nodes under SCHED_DEADLINE.

#pragma once

#include <vector>

#include "data.h"

// For each node of the stabilizer what it may run in a period, in nanoseconds: `factor` times the median of its CPU
// time in a loop over the first of `frames`, and something for waking up and passing results on.
std::vector<uint64_t> estimate_runtimes(const std::vector<cv::Mat> &frames, double crop, double factor);
