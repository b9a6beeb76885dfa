#include "clip.h"

#include <opencv2/imgproc.hpp>
#include <stdexcept>

namespace
{

// A shaken clip is resized to more than is shown, so that there is something to see at the edges.
constexpr double MARGIN = 1.15;

constexpr double RATE_DEFAULT = 25;

} // namespace

Clip::Clip(const Settings &settings, const std::atomic<bool> &stop) : settings_(settings), stop_(stop)
{
    if (!capture_.open(settings.clip))
        throw std::runtime_error(settings.clip + ": no video that OpenCV can open; check the name and the format");
    has_frame_ = capture_.grab();
    if (!has_frame_)
        throw std::runtime_error(settings.clip + ": has no frame that OpenCV can read; try another clip");
    if (settings.shake_seed)
        shake_.emplace(*settings.shake_seed, settings.shake_keep, settings.image);
}

void Clip::read(cv::Mat frame)
{
    if (has_frame_) {
        cv::Mat picture;
        if (!capture_.retrieve(picture))
            throw std::runtime_error(settings_.clip + ": frame " + std::to_string(path_.size()) +
                                     " cannot be decoded; end before it with --frames");
        resize(picture);
        has_frame_ = path_.size() < settings_.frames && !stop_ && capture_.grab();
    } else {
        copies_++;
    }
    frame_.copyTo(frame);
}

std::vector<cv::Mat> Clip::read_all()
{
    std::vector<cv::Mat> frames;

    while (has_frame_) {
        frames.emplace_back(settings_.image, CV_8UC3);
        read(frames.back());
    }
    return frames;
}

void Clip::resize(const cv::Mat &picture)
{
    const cv::Size image = settings_.image;

    path_.push_back(shake_ ? shake_->step() : cv::Matx33d::eye());
    if (!shake_) {
        cv::resize(picture, frame_, image, 0, 0, cv::INTER_AREA);
        return;
    }
    const cv::Size larger(cvRound(image.width * MARGIN), cvRound(image.height * MARGIN));
    const cv::Matx33d to_center(1, 0, (image.width - larger.width) / 2.0,   //
                                0, 1, (image.height - larger.height) / 2.0, //
                                0, 0, 1);
    cv::Mat resized;
    cv::resize(picture, resized, larger, 0, 0, cv::INTER_AREA);
    cv::warpPerspective(resized, frame_, path_.back() * to_center, image, cv::INTER_LINEAR, cv::BORDER_REPLICATE);
}

double Clip::rate() const
{
    const double rate = capture_.get(cv::CAP_PROP_FPS);

    // Some clips say 0, or nonsense.
    return rate >= 1 && rate <= 1000 ? rate : RATE_DEFAULT;
}

uint64_t Clip::frames_expected() const
{
    const double frames = capture_.get(cv::CAP_PROP_FRAME_COUNT);

    return frames > 0 ? std::min(static_cast<uint64_t>(frames), settings_.frames) : 0;
}
