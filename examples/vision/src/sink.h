// Where stabilized frames go: in any case to a picture in memory, which is all the screen there is.

#pragma once

#include <opencv2/videoio.hpp>
#include <string>

#include "data.h"
#include "log.h"

class Sink
{
public:
    struct Settings {
        // A video (.avi, MJPG), or images where it has a number's place (frame%04d.png); none if empty.
        std::string out;
        double rate;
        cv::Size image;
        // For progress; 0 if unknown.
        uint64_t frames_expected;
        // Whether the hash of each frame is logged.
        bool is_hashed;
        // Of these frames copies are kept.
        uint64_t keep_from = 0, keep_count = 0;
    };

    // Throws std::runtime_error if the video cannot be written.
    Sink(const Settings &settings, Log &log);

    // The next image. The first LATENCY are of before the first frame, and dropped.
    void show(const cv::Mat &stabilized);

    const std::vector<cv::Mat> &kept() const { return kept_; }

private:
    void write(const cv::Mat &frame, uint64_t number);
    void say_progress(uint64_t frames) const;

    Settings settings_;
    Log &log_;
    cv::VideoWriter video_;
    cv::Mat screen_;
    std::vector<cv::Mat> kept_;
    uint64_t calls_ = 0;
    bool is_terminal_;
};
