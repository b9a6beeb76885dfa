// What the nodes tell each other. Times are of CLOCK_MONOTONIC, in ns.

#pragma once

#include <array>
#include <cstdint>

#include "recording.h"

struct Frame {
    uint64_t number;
    uint64_t taken_ns;
    uint8_t pixels[HEIGHT][WIDTH];
};

// Columns of the picture, from `left` to before `right`.
struct Box {
    uint32_t left, right;
};

struct Boxes {
    static constexpr uint32_t MOST = 32;

    uint64_t frame;
    uint64_t taken_ns;
    uint64_t count;
    std::array<Box, MOST> box;
};

struct Scan {
    uint64_t number;
    uint64_t taken_ns;
    Beams range;
};

// To the right of the middle, in degrees, and how far away, in metres.
struct Obstacle {
    float bearing, range;
};

struct Obstacles {
    uint64_t frame;
    uint64_t frame_taken_ns; // 0 without a frame
    uint64_t scan_taken_ns;  // 0 without a scan
    uint64_t count;
    std::array<Obstacle, Boxes::MOST> obstacle;
};
