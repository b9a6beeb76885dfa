// A shaking camera whose path is known.

#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <random>

// A random walk of translation and rotation about the center of the image. So that it stays near the center, each step
// begins at a part `keep` of the way out: 0 is noise without memory, near 1 a free walk.
class Shake
{
public:
    Shake(uint64_t seed, double keep, cv::Size image);

    // The next frame's: where it shows what the clip has at a point. The first frame does not move.
    cv::Matx33d step();

private:
    double normal();

    std::mt19937_64 random_;
    double keep_;
    cv::Size image_;
    double x_ = 0, y_ = 0, angle_ = 0; // pixels, radians
    bool is_first_ = true;
};
