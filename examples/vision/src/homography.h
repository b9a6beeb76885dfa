// Nodes that work out how the camera moved, and how it should have.

#pragma once

#include <array>

#include "data.h"

// Computes the homography from the last frame into the current one that most features agree with, by RANSAC. Without
// enough features it is the identity, with no inliers.
void compute_homography(const Points &before, const Tracked &now, Motion &motion);

// Filters noise: `matrix` is the motion, or the identity where too few features agree or no camera moves like that.
void filter_homography(const Motion &motion, cv::Size image, Matrix &matrix);

// Merges the matrices of the last frames, `matrices[0]` being the current one, into the correction of the frame LATENCY
// frames ago.
void smooth_homography(const std::array<const Matrix *, MATRICES> &matrices, Matrix &correction);
