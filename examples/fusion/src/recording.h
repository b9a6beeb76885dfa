// What both sensors saw: frames of a camera, and for each frame the newest scan. `record` makes it.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

constexpr int WIDTH = 192;
constexpr int HEIGHT = 144;
// A beam for each column of the picture.
constexpr int BEAMS = WIDTH;
// Degrees, from the left end of the picture to the right one.
constexpr double VIEW = 60;

using Beams = std::array<float, BEAMS>;

// A recording, in memory. A range of 0 m is no echo.
struct Recording {
    std::vector<uint8_t> pixels; // frames of HEIGHT rows
    std::vector<Beams> scans;    // one for each frame

    size_t frames() const { return scans.size(); }
    const uint8_t *frame(size_t number) const { return pixels.data() + number % frames() * WIDTH * HEIGHT; }
    const Beams &scan(size_t number) const { return scans[number % frames()]; }
};

// That in `path`. Throws std::runtime_error if there is none.
Recording read_recording(const std::string &path);

// Writes it. Throws std::runtime_error if it cannot.
void write_recording(const std::string &path, const Recording &recording);
