// record CLIP FILE: makes the recording of examples/fusion from footage.

#include <cmath>
#include <cstdio>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>
#include <random>
#include <stdexcept>

#include "detector.h"
#include "recording.h"

namespace
{

constexpr size_t FRAMES = 300;
// Of the camera, in metres and degrees, as recording.h says.
constexpr double ABOVE = 4;
constexpr double DOWN = 12;
// The farthest echo, in metres, and how much ranges are off.
constexpr double FARTHEST = 40;
constexpr double NOISE = 0.02;

double radians(double degrees)
{
    return degrees * CV_PI / 180;
}

// How far away the ground is that is seen in the row; infinite above the horizon.
double range(int row)
{
    const double up_and_down = VIEW * HEIGHT / WIDTH;
    const double below = DOWN + ((row + 0.5) / HEIGHT - 0.5) * up_and_down;

    return below > 0 ? ABOVE / std::tan(radians(below)) : INFINITY;
}

Beams scan(const cv::Mat &moving, std::mt19937 &random)
{
    std::normal_distribution<double> noise(1, NOISE);
    Beams beams = {};

    for (int column = 0; column < WIDTH; column++) {
        int row = HEIGHT - 1;

        while (row >= 0 && moving.at<uint8_t>(row, column) == 0)
            row--;
        if (row >= 0 && range(row) < FARTHEST)
            beams[static_cast<size_t>(column)] = static_cast<float>(range(row) * noise(random));
    }
    return beams;
}

Recording record(const std::string &clip)
{
    cv::VideoCapture capture(clip);
    Recording recording;
    Detector detector;
    std::mt19937 random(1);
    cv::Mat frame, grey, small;

    while (recording.frames() < FRAMES && capture.read(frame)) {
        cv::cvtColor(frame, grey, cv::COLOR_BGR2GRAY);
        cv::resize(grey, small, {WIDTH, HEIGHT}, 0, 0, cv::INTER_AREA);
        recording.pixels.insert(recording.pixels.end(), small.datastart, small.dataend);
        recording.scans.push_back(scan(detector.moving(small), random));
    }
    if (recording.frames() == 0)
        throw std::runtime_error(clip + " is no footage; name another clip with cmake -DCLIP=FILE");
    return recording;
}

} // namespace

int main(int count, char **words)
{
    if (count != 3) {
        std::fprintf(stderr, "usage: record CLIP FILE\n");
        return 2;
    }
    try {
        write_recording(words[2], record(words[1]));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
