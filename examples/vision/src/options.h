// What the command line says.

#pragma once

#include <optional>
#include <string>

#include "source.h"

struct Options {
    Source::Settings source;
    bool is_pipelined = true;
    uint32_t replicas = 0; // as many as there are nodes on the longest path
    std::optional<uint64_t> jitter_seed;
    double crop = 0.1;
    std::string out, csv, shake_csv, sheet;
    uint64_t sheet_frame = 100;
};

// Throws std::invalid_argument, which says what is wrong with what; nothing if it was asked for help, which was given.
std::optional<Options> parse(int argc, char **argv);
