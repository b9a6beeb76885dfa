// What the command line says.

#pragma once

#include <optional>
#include <string>

#include "clip.h"
#include "pipelined.h"

struct Options {
    Clip::Settings clip;
    // Frames of the clip, or of as many turns of it as that takes if it is cached.
    uint64_t frames = UINT64_MAX;
    // So many frames are decoded before the start, and come again and again; 0: all are decoded as they are needed.
    uint64_t cache_frames = 0;

    bool is_pipelined = true;
    uint32_t replicas = 0; // as many as there are nodes on the longest path
    std::optional<uint64_t> jitter_seed;

    // Frames come at this period, or as soon as there is room for them.
    std::optional<uint64_t> period_ns;
    std::optional<uint64_t> duration_ns;
    std::optional<uint64_t> start_ns; // on CLOCK_MONOTONIC
    Scheduling::Policy policy = Scheduling::Policy::Other;
    uint8_t base_priority = 1;
    double budget = 2;

    std::optional<std::string> gpu_name; // of a soft one
    std::string arbitration;
    bool releases_early = false;
    std::vector<uint64_t> kernels_ns; // if the GPU's operations only take time

    SystemSettings system; // under Laxity's own scheduler
    std::string trace;

    double crop = 0.1;
    std::string out, csv, times, shake_csv, sheet;
    uint64_t sheet_frame = 100;
    bool is_json = false;

    // How many frames there are at most.
    uint64_t jobs() const;
};

// Throws std::invalid_argument, which says what is wrong with what; nothing if it was asked for help, which was given.
std::optional<Options> parse(int argc, char **argv);
