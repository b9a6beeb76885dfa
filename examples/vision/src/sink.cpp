#include "sink.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <opencv2/imgcodecs.hpp>
#include <stdexcept>
#include <unistd.h>

namespace
{

bool is_pattern(const std::string &out)
{
    return out.find('%') != std::string::npos;
}

// FNV-1a of 64 bits, over words rather than bytes: to compare frames with, not against malice.
uint64_t hash(const cv::Mat &frame)
{
    const size_t bytes = frame.total() * frame.elemSize();
    uint64_t hash = 0xcbf29ce484222325;

    CV_Assert(frame.isContinuous());
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, frame.data + at, std::min(sizeof(word), bytes - at));
        hash = (hash ^ word) * 0x100000001b3;
        // The product spreads upwards alone.
        hash ^= hash >> 32;
    }
    return hash;
}

} // namespace

Sink::Sink(const Settings &settings, Log &log)
    : settings_(settings), log_(log), is_terminal_(isatty(STDERR_FILENO) == 1)
{
    if (settings.out.empty() || is_pattern(settings.out))
        return;
    const int codec = cv::VideoWriter::fourcc('M', 'J', 'P', 'G');
    if (!video_.open(settings.out, cv::CAP_OPENCV_MJPEG, codec, settings.rate, settings.image))
        throw std::runtime_error(settings.out + ": cannot be written; use a name that ends in .avi, in a folder that " +
                                 "is there");
}

void Sink::show(const cv::Mat &stabilized)
{
    if (calls_++ < LATENCY)
        return;
    const uint64_t frame = calls_ - 1 - LATENCY;
    stabilized.copyTo(screen_);
    if (settings_.is_hashed)
        log_.hashes.push_back(hash(screen_));
    write(screen_, frame);
    if (frame >= settings_.keep_from && frame - settings_.keep_from < settings_.keep_count)
        kept_.push_back(screen_.clone());
    say_progress(frame + 1);
}

void Sink::write(const cv::Mat &frame, uint64_t number)
{
    if (video_.isOpened())
        video_.write(frame);
    if (!is_pattern(settings_.out))
        return;
    const std::string name = cv::format(settings_.out.c_str(), static_cast<int>(number));
    if (!cv::imwrite(name, frame))
        throw std::runtime_error(name + ": cannot be written; make its folder first");
}

void Sink::say_progress(uint64_t frames) const
{
    if (!is_terminal_ || (frames % 10 != 0 && frames != settings_.frames_expected))
        return;
    if (settings_.frames_expected > 0)
        std::fprintf(stderr, "\rframe %ju of %ju ", frames, settings_.frames_expected);
    else
        std::fprintf(stderr, "\rframe %ju ", frames);
}
