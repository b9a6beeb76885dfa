// record CLIP SCANS FILE: makes the recording of examples/fusion of footage and of recorded scans; if SCANS is "" of scans that
// fit the footage.

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "detector.h"
#include "recording.h"

namespace
{

constexpr size_t FRAMES = 675;
// A recorded scan is that of so many frames.
constexpr size_t FRAMES_A_SCAN = 3;
// Ranges of a recorded scan, from a quarter of a turn to the right to one to the left, and of a degree.
constexpr size_t RECORDED = 361;
constexpr double RECORDED_A_DEGREE = 2;
// Of the camera, in metres and degrees, for scans that fit the footage.
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

// What a scanner beside the camera would see: for each column the lowest pixel that moves says how far away the ground is.
Beams fitting_scan(const cv::Mat &moving, std::mt19937 &random)
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

// The recorded scans in `path`, with a range for each column of the picture.
std::vector<Beams> recorded_scans(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<Beams> scans;
    uint8_t bytes[2 * RECORDED];

    while (file.read(reinterpret_cast<char *>(bytes), sizeof(bytes))) {
        Beams beams;

        for (int column = 0; column < WIDTH; column++) {
            const double right = ((column + 0.5) / WIDTH - 0.5) * VIEW;
            const size_t beam = static_cast<size_t>(std::lround((90 - right) * RECORDED_A_DEGREE));

            beams[static_cast<size_t>(column)] = static_cast<float>((bytes[2 * beam] + 256 * bytes[2 * beam + 1]) / 100.0);
        }
        scans.push_back(beams);
    }
    if (scans.empty() || file.gcount() != 0)
        throw std::runtime_error(path + " is no recording of scans; name another with cmake -DSCANS=FILE, or none: -DSCANS=");
    return scans;
}

Recording record(const std::string &clip, const std::string &scans)
{
    const std::vector<Beams> recorded = scans.empty() ? std::vector<Beams>() : recorded_scans(scans);
    cv::VideoCapture capture(clip);
    Recording recording;
    Detector detector;
    std::mt19937 random(1);
    cv::Mat frame, grey, small;

    while (recording.frames() < FRAMES && capture.read(frame)) {
        cv::cvtColor(frame, grey, cv::COLOR_BGR2GRAY);
        cv::resize(grey, small, {WIDTH, HEIGHT}, 0, 0, cv::INTER_AREA);
        recording.pixels.insert(recording.pixels.end(), small.datastart, small.dataend);
        if (recorded.empty())
            recording.scans.push_back(fitting_scan(detector.moving(small), random));
        else
            recording.scans.push_back(recorded[recording.frames() / FRAMES_A_SCAN % recorded.size()]);
    }
    if (recording.frames() == 0)
        throw std::runtime_error(clip + " is no footage; name another clip with cmake -DCLIP=FILE");
    return recording;
}

} // namespace

int main(int count, char **words)
{
    if (count != 4) {
        std::fprintf(stderr, "usage: record CLIP SCANS FILE\n");
        return 2;
    }
    try {
        write_recording(words[3], record(words[1], words[2]));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
