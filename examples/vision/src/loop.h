// Frames in memory, again and again: a source that costs no more than a copy, however long it is read.

#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "source.h"

class Loop : public Source
{
public:
    // `jobs` frames, those of `frames` in turns; fewer if `stop` becomes true. Both are there as long as this is.
    Loop(const std::vector<cv::Mat> &frames, uint64_t jobs, const std::atomic<bool> &stop)
        : frames_(frames), jobs_(jobs), stop_(stop)
    {
    }

    bool has_more() const override { return next_ < jobs_ && !stop_; }
    void read(cv::Mat frame) override { frames_[next_++ % frames_.size()].copyTo(frame); }

private:
    const std::vector<cv::Mat> &frames_;
    uint64_t jobs_;
    const std::atomic<bool> &stop_;
    uint64_t next_ = 0;
};
