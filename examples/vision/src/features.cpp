#include "features.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <opencv2/video/tracking.hpp>

namespace
{

constexpr int FLOW_ITERATIONS = 5;
constexpr double FLOW_EPSILON = 0.01; // pixels; an iteration that moves a point by less is its last

constexpr int CELL = 18; // pixels
constexpr int HARRIS_BLOCK = 3;
constexpr int HARRIS_APERTURE = 3;
constexpr double HARRIS_K = 0.04;
// Corners are at least so strong, as a share of the strongest in the image.
constexpr float HARRIS_QUALITY = 0.001F;

const cv::Mat positions(const Point *points, uint32_t count)
{
    return cv::Mat(static_cast<int>(count), 1, CV_32FC2, const_cast<Point *>(points));
}

struct Corner {
    float strength;
    Point at;
};

// The cells of an image, and which of them have a feature.
class Cells
{
public:
    explicit Cells(cv::Size image)
        : size_((image.width + CELL - 1) / CELL, (image.height + CELL - 1) / CELL),
          is_taken_(static_cast<size_t>(size_.area()), false)
    {
    }

    // Whether the cell at `point`, which is in the image, was free.
    bool take(Point point)
    {
        const int cell = static_cast<int>(point.y) / CELL * size_.width + static_cast<int>(point.x) / CELL;
        const bool was_free = !is_taken_[static_cast<size_t>(cell)];

        is_taken_[static_cast<size_t>(cell)] = true;
        return was_free;
    }

    // The strongest point of every free cell where that is above `threshold`.
    std::vector<Corner> corners(const cv::Mat &strength, float threshold) const
    {
        std::vector<Corner> corners;

        for (int cell = 0; cell < size_.area(); cell++) {
            if (is_taken_[static_cast<size_t>(cell)])
                continue;
            const cv::Point corner(cell % size_.width * CELL, cell / size_.width * CELL);
            const cv::Rect area = cv::Rect(corner, cv::Size(CELL, CELL)) & cv::Rect({ 0, 0 }, strength.size());
            double best;
            cv::Point at;
            cv::minMaxLoc(strength(area), nullptr, &best, nullptr, &at);
            if (best > threshold)
                corners.push_back({ static_cast<float>(best),
                                    { static_cast<float>(area.x + at.x), static_cast<float>(area.y + at.y) } });
        }
        return corners;
    }

private:
    cv::Size size_;
    std::vector<bool> is_taken_;
};

} // namespace

void compute_pyramid(const cv::Mat &gray, const PyramidLayout &layout, uint8_t *pyramid)
{
    for (int level = 0; level < layout.levels(); level++) {
        cv::Mat image = layout.level(pyramid, level);
        cv::Mat bordered = layout.with_border(pyramid, level);

        if (level == 0)
            gray.copyTo(image);
        else
            cv::pyrDown(layout.level(pyramid, level - 1), image, image.size());
        // Isolated: the border is made of the image, not of what lies around it in memory.
        cv::copyMakeBorder(image, bordered, FLOW_WINDOW, FLOW_WINDOW, FLOW_WINDOW, FLOW_WINDOW,
                           cv::BORDER_REFLECT_101 | cv::BORDER_ISOLATED);
    }
}

void compute_optical_flow(const PyramidLayout &layout, const uint8_t *before, const uint8_t *now, const Points &points,
                          Tracked &tracked)
{
    tracked.count = points.count;
    if (points.count == 0)
        return;
    std::vector<cv::Mat> pyramid_before, pyramid_now;
    for (int level = 0; level < layout.levels(); level++) {
        pyramid_before.push_back(layout.level(before, level));
        pyramid_now.push_back(layout.level(now, level));
    }
    cv::Mat found(static_cast<int>(points.count), 1, CV_8UC1, tracked.is_found);
    cv::Mat moved(static_cast<int>(points.count), 1, CV_32FC2, tracked.at);
    const cv::TermCriteria criteria(cv::TermCriteria::COUNT | cv::TermCriteria::EPS, FLOW_ITERATIONS, FLOW_EPSILON);

    cv::calcOpticalFlowPyrLK(pyramid_before, pyramid_now, positions(points.at, points.count), moved, found,
                             cv::noArray(), { FLOW_WINDOW, FLOW_WINDOW }, layout.levels() - 1, criteria);
    CV_Assert(moved.data == reinterpret_cast<uint8_t *>(tracked.at) && found.data == tracked.is_found);
}

void track_features(const cv::Mat &gray, const Tracked &tracked, Points &points)
{
    Cells cells(gray.size());
    const cv::Rect_<float> image(0, 0, static_cast<float>(gray.cols), static_cast<float>(gray.rows));

    points.count = 0;
    for (uint32_t i = 0; i < tracked.count; i++) {
        const Point at = tracked.at[i];
        if (tracked.is_found[i] != 0 && image.contains({ at.x, at.y }) && cells.take(at))
            points.at[points.count++] = at;
    }

    cv::Mat strength;
    double strongest;
    cv::cornerHarris(gray, strength, HARRIS_BLOCK, HARRIS_APERTURE, HARRIS_K);
    cv::minMaxLoc(strength, nullptr, &strongest);
    std::vector<Corner> corners = cells.corners(strength, static_cast<float>(strongest) * HARRIS_QUALITY);
    // Stable: equally strong corners stay in the order of cells.
    std::stable_sort(corners.begin(), corners.end(),
                     [](const Corner &one, const Corner &other) { return one.strength > other.strength; });
    for (const Corner &corner : corners) {
        if (points.count == POINTS_MAX)
            break;
        points.at[points.count++] = corner.at;
    }
}
