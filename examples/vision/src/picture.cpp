#include "picture.h"

#include <opencv2/imgproc.hpp>

void duplicate(const cv::Mat &color, cv::Mat copy)
{
    color.copyTo(copy);
}

void convert_to_grayscale(const cv::Mat &color, cv::Mat gray)
{
    cv::cvtColor(color, gray, cv::COLOR_BGR2GRAY);
}

void warp_perspective(const cv::Mat &frame, const Matrix &correction, double crop, cv::Mat stabilized)
{
    const double scale = 1 / (1 - 2 * crop);
    const double to_left = (1 - scale) * frame.cols / 2, to_top = (1 - scale) * frame.rows / 2;
    const cv::Matx33d enlarge(scale, 0, to_left, 0, scale, to_top, 0, 0, 1);

    // What is outside of the frame is mirrored, which is less conspicuous than black.
    cv::warpPerspective(frame, stabilized, enlarge * to_matx(correction), frame.size(), cv::INTER_LINEAR,
                        cv::BORDER_REFLECT_101);
}
