// What to reserve for the nodes under SCHED_DEADLINE.

#pragma once

#include "pipelined.h"

// For each node of the stabilizer what its thread may run in a period, in nanoseconds: `factor` times the median of
// what it needs for a job, measured with the first of `frames` under SCHED_OTHER, and something for the jitter of all
// that.
std::vector<uint64_t> estimate_runtimes(const std::vector<cv::Mat> &frames, double crop,
                                        const PipelineSettings &settings, double factor);
