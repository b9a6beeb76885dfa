// Finds what moves before a background that stands still.

#pragma once

#include <opencv2/core.hpp>
#include <vector>

class Detector
{
public:
    // Pixels that differ from the background, which is the mean of the last seconds: 255, the others 0. Valid until the
    // next call.
    const cv::Mat &moving(const cv::Mat &frame);

    // What moves in one piece, the largest first.
    std::vector<cv::Rect> boxes(const cv::Mat &frame);

private:
    cv::Mat background_, mean_, difference_, mask_, labels_, areas_, centres_;
};
