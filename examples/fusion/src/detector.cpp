#include "detector.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

namespace
{

// What a frame weighs in the background.
constexpr double WEIGHT = 0.02;
// By how much a pixel differs from the background.
constexpr double CONTRAST = 25;
// The smallest thing, in pixels.
constexpr int AREA_MIN = 40;

} // namespace

const cv::Mat &Detector::moving(const cv::Mat &frame)
{
    if (background_.empty())
        frame.convertTo(background_, CV_32F);
    background_.convertTo(mean_, CV_8U);
    cv::absdiff(frame, mean_, difference_);
    cv::threshold(difference_, mask_, CONTRAST, 255, cv::THRESH_BINARY);
    cv::medianBlur(mask_, mask_, 3);
    cv::accumulateWeighted(frame, background_, WEIGHT);
    return mask_;
}

std::vector<cv::Rect> Detector::boxes(const cv::Mat &frame)
{
    cv::dilate(moving(frame), mask_, cv::Mat(), {-1, -1}, 2);
    const int count = cv::connectedComponentsWithStats(mask_, labels_, areas_, centres_, 8);
    std::vector<cv::Rect> found;

    // The first is the background.
    for (int label = 1; label < count; label++) {
        const int *of = areas_.ptr<int>(label);

        if (of[cv::CC_STAT_AREA] >= AREA_MIN)
            found.emplace_back(of[cv::CC_STAT_LEFT], of[cv::CC_STAT_TOP], of[cv::CC_STAT_WIDTH], of[cv::CC_STAT_HEIGHT]);
    }
    std::sort(found.begin(), found.end(), [](const cv::Rect &a, const cv::Rect &b) { return a.area() > b.area(); });
    return found;
}
