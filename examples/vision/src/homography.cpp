#include "homography.h"

#include <algorithm>
#include <cmath>
#include <opencv2/calib3d.hpp>

namespace
{

constexpr double RANSAC_DISTANCE = 3; // pixels
constexpr int RANSAC_ITERATIONS = 2000;
constexpr double RANSAC_CONFIDENCE = 0.995;

constexpr uint32_t PAIRS_MIN = 8;
// Between two frames no corner of the image moves further, as a share of the shorter side. So the image stays upright,
// and the matrix can be inverted.
constexpr double CORNER_MAX = 0.25;

bool is_plausible(const Motion &motion, cv::Size image)
{
    if (motion.pairs < PAIRS_MIN || 2 * motion.inliers < motion.pairs)
        return false;
    const double width = image.width, height = image.height;
    const double limit = CORNER_MAX * std::min(width, height);
    for (const cv::Point2d corner : { cv::Point2d(0, 0), { width, 0 }, { 0, height }, { width, height } }) {
        // False for what is not a number, too.
        if (!(cv::norm(apply(to_matx(motion.matrix), corner) - corner) < limit))
            return false;
    }
    return true;
}

} // namespace

void compute_homography(const Points &before, const Tracked &now, Motion &motion)
{
    std::vector<cv::Point2f> from, to;
    for (uint32_t i = 0; i < now.count; i++) {
        if (now.is_found[i] != 0) {
            from.emplace_back(before.at[i].x, before.at[i].y);
            to.emplace_back(now.at[i].x, now.at[i].y);
        }
    }
    motion = { IDENTITY, static_cast<uint32_t>(from.size()), 0 };
    if (from.size() < PAIRS_MIN)
        return;
    // cv::RANSAC draws from a generator that every call seeds anew, with a constant.
    cv::Mat is_inlier;
    const cv::Mat matrix =
        cv::findHomography(from, to, cv::RANSAC, RANSAC_DISTANCE, is_inlier, RANSAC_ITERATIONS, RANSAC_CONFIDENCE);
    if (matrix.empty())
        return;
    motion.matrix = from_matx(cv::Matx33d(matrix));
    motion.inliers = static_cast<uint32_t>(cv::countNonZero(is_inlier));
}

void filter_homography(const Motion &motion, cv::Size image, Matrix &matrix)
{
    matrix = is_plausible(motion, image) ? motion.matrix : IDENTITY;
}

// The smoothed position of what is seen at a point is the weighted mean of its positions in all frames of the window.
// With H(k) the matrix from frame k - 1 to frame k, and c the frame to correct,
//
//     correction = sum over i of weight(i) M(c -> i),  M(c -> i + 1) = H(i + 1) M(c -> i),  M(c -> i) = H(i + 1)^-1 M(c
//     -> i + 1)
//
// The weights are half a sine: of all windows of a length it leaves nearly the least acceleration of a random walk.
void smooth_homography(const std::array<const Matrix *, MATRICES> &matrices, Matrix &correction)
{
    constexpr uint32_t frames = MATRICES + 1;
    // In `matrices` the last is the oldest, from frame 0 of the window to frame 1.
    const auto into = [&](uint32_t frame) { return to_matx(*matrices[MATRICES - frame]); };
    const auto weight = [](uint32_t frame) { return std::sin(CV_PI * (frame + 1) / (frames + 1)); };
    constexpr uint32_t corrected = MATRICES - LATENCY;

    cv::Matx33d sum = weight(corrected) * cv::Matx33d::eye();
    cv::Matx33d motion = cv::Matx33d::eye();
    for (uint32_t frame = corrected + 1; frame < frames; frame++) {
        motion = to_matx(from_matx(into(frame) * motion));
        sum += weight(frame) * motion;
    }
    motion = cv::Matx33d::eye();
    for (uint32_t frame = corrected; frame > 0; frame--) {
        motion = to_matx(from_matx(into(frame).inv() * motion));
        sum += weight(frame - 1) * motion;
    }
    correction = from_matx(sum);
}
