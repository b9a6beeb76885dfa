#include "shake.h"

#include <cmath>

namespace
{

// Standard deviations of one step.
constexpr double TRANSLATION = 0.01;           // of the width of the image, to the side and upwards each
constexpr double ROTATION = 0.7 / 180 * CV_PI; // radians

} // namespace

Shake::Shake(uint64_t seed, double keep, cv::Size image) : random_(seed), keep_(keep), image_(image) {}

// The sum of 12 uniform numbers has variance 1. Unlike std::normal_distribution it is the same everywhere, and bounded.
double Shake::normal()
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += static_cast<double>(random_() >> 11) / 9007199254740992.0; // of 2^53
    return sum;
}

cv::Matx33d Shake::step()
{
    if (!is_first_) {
        x_ = keep_ * x_ + TRANSLATION * image_.width * normal();
        y_ = keep_ * y_ + TRANSLATION * image_.width * normal();
        angle_ = keep_ * angle_ + ROTATION * normal();
    }
    is_first_ = false;
    const double sine = std::sin(angle_), cosine = std::cos(angle_);
    const double center_x = image_.width / 2.0, center_y = image_.height / 2.0;
    return { cosine, -sine,  center_x - cosine * center_x + sine * center_y + x_, //
             sine,   cosine, center_y - sine * center_x - cosine * center_y + y_, //
             0,      0,      1 };
}
