#include "data.h"

namespace
{

cv::Size padded(cv::Size size)
{
    return { size.width + 2 * FLOW_WINDOW, size.height + 2 * FLOW_WINDOW };
}

} // namespace

// Stops, as cv::buildOpticalFlowPyramid does, before a level is no larger than the window.
PyramidLayout::PyramidLayout(cv::Size image)
{
    cv::Size size = image;

    while (levels() < PYRAMID_LEVELS && size.width > FLOW_WINDOW && size.height > FLOW_WINDOW) {
        levels_.push_back({ size, bytes_ });
        bytes_ += static_cast<size_t>(padded(size).area());
        size = { (size.width + 1) / 2, (size.height + 1) / 2 };
    }
    CV_Assert(!levels_.empty() && "options refuse images that are smaller than the window");
}

cv::Mat PyramidLayout::with_border(uint8_t *pyramid, int level) const
{
    const Level &at = levels_.at(static_cast<size_t>(level));

    return view(pyramid + at.offset, padded(at.size), CV_8UC1);
}

cv::Mat PyramidLayout::level(uint8_t *pyramid, int level) const
{
    const cv::Size size = levels_.at(static_cast<size_t>(level)).size;

    return with_border(pyramid, level)(cv::Rect({ FLOW_WINDOW, FLOW_WINDOW }, size));
}

const cv::Mat PyramidLayout::level(const uint8_t *pyramid, int level) const
{
    // A const matrix gives no access to write.
    return this->level(const_cast<uint8_t *>(pyramid), level);
}

cv::Mat view(uint8_t *bytes, cv::Size size, int type)
{
    return cv::Mat(size, type, bytes);
}

const cv::Mat view(const uint8_t *bytes, cv::Size size, int type)
{
    return cv::Mat(size, type, const_cast<uint8_t *>(bytes));
}

Matrix from_matx(const cv::Matx33d &matrix)
{
    Matrix result;

    for (int i = 0; i < 9; i++)
        result.at[i] = matrix.val[i] / matrix.val[8];
    return result;
}

cv::Point2d apply(const cv::Matx33d &matrix, cv::Point2d point)
{
    const cv::Vec3d moved = matrix * cv::Vec3d(point.x, point.y, 1);

    return { moved[0] / moved[2], moved[1] / moved[2] };
}
