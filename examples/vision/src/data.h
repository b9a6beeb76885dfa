// What the nodes share: plain data of fixed size, so that all of it can live in shared memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

// Half the window of frames over which motion is smoothed. It settles the lengths of the two longest delays: what is
// shown lies SMOOTHING + 1 frames back, in the middle of the 2 * SMOOTHING + 2 frames that as many matrices less one
// connect.
constexpr uint32_t SMOOTHING = 5;
constexpr uint32_t MATRICES = 2 * SMOOTHING + 1;
constexpr uint32_t LATENCY = SMOOTHING + 1;

constexpr uint32_t POINTS_MAX = 1000;
constexpr int PYRAMID_LEVELS = 6;
constexpr int FLOW_WINDOW = 10; // pixels, at every level

struct Point {
    float x, y;
};

// Features to look for in the next frame.
struct Points {
    uint32_t count;
    Point at[POINTS_MAX];
};

// Where the features of the frame before are now, in the same order, and which of them were found again.
struct Tracked {
    uint32_t count;
    Point at[POINTS_MAX];
    uint8_t is_found[POINTS_MAX];
};

// A homography, by rows: takes (x, y, 1) to (x', y', w).
struct Matrix {
    double at[9];
};

constexpr Matrix IDENTITY = { { 1, 0, 0, 0, 1, 0, 0, 0, 1 } };

// The motion from the frame before to this one, and what it rests on.
struct Motion {
    Matrix matrix;
    uint32_t pairs;   // features that were found again
    uint32_t inliers; // those of them that moved as `matrix` says
};

// Where the levels of an image pyramid are in one object. Each has a border as wide as the window of the optical flow,
// which looks beyond the edge of the image.
class PyramidLayout
{
public:
    explicit PyramidLayout(cv::Size image);

    size_t bytes() const { return bytes_; }
    int levels() const { return static_cast<int>(levels_.size()); }

    // Level `level`, 0 being the image itself, of the pyramid at `pyramid`. The pixels outside of the picture are
    // memory of the same matrix, as cv::Mat::locateROI tells.
    cv::Mat level(uint8_t *pyramid, int level) const;
    const cv::Mat level(const uint8_t *pyramid, int level) const;

    // The same with its border.
    cv::Mat with_border(uint8_t *pyramid, int level) const;

private:
    struct Level {
        cv::Size size;
        size_t offset;
    };

    std::vector<Level> levels_;
    size_t bytes_ = 0;
};

// An image, without a copy.
cv::Mat view(uint8_t *bytes, cv::Size size, int type);
const cv::Mat view(const uint8_t *bytes, cv::Size size, int type);

inline const cv::Matx33d to_matx(const Matrix &matrix)
{
    return cv::Matx33d(matrix.at);
}

// Scaled so that its last element is 1.
Matrix from_matx(const cv::Matx33d &matrix);

// Where `matrix` takes `point`.
cv::Point2d apply(const cv::Matx33d &matrix, cv::Point2d point);
