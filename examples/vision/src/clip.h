// A clip, decoded frame by frame, and shaken if so desired.

#pragma once

#include <atomic>
#include <opencv2/videoio.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data.h"
#include "shake.h"
#include "source.h"

class Clip : public Source
{
public:
    struct Settings {
        std::string clip;
        cv::Size image;
        // Stop after so many frames.
        uint64_t frames = UINT64_MAX;
        std::optional<uint64_t> shake_seed = {};
        double shake_keep = 0.5;
    };

    // Throws std::runtime_error if the clip has no frame that can be read. When `stop` becomes true the clip ends.
    Clip(const Settings &settings, const std::atomic<bool> &stop);

    // At the end there are LATENCY copies of the last frame, so that as many frames leave the stabilizer as entered.
    bool has_more() const override { return has_frame_ || copies_ < LATENCY; }
    void read(cv::Mat frame) override;

    // All frames that are left, without copies.
    std::vector<cv::Mat> read_all();

    // Frames a second.
    double rate() const;

    // Frames that there should be; an estimate, 0 if that is not known.
    uint64_t frames_expected() const;

    // Where each frame that was read shows what the clip has at a point.
    const std::vector<cv::Matx33d> &path() const { return path_; }

private:
    void resize(const cv::Mat &picture);

    Settings settings_;
    const std::atomic<bool> &stop_;
    cv::VideoCapture capture_;
    std::optional<Shake> shake_;
    std::vector<cv::Matx33d> path_;
    cv::Mat frame_;
    bool has_frame_ = false;
    uint64_t copies_ = 0;
};
