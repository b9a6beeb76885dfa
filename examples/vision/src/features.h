// Nodes that find features and follow them.

#pragma once

#include "data.h"

// Resizes the image into several images, each half as wide and high as the one before.
void compute_pyramid(const cv::Mat &gray, const PyramidLayout &layout, uint8_t *pyramid);

// Determines where the features `points` of the last frame are in the current one: Lucas and Kanade's method from the
// smallest level of the pyramids to the largest.
void compute_optical_flow(const PyramidLayout &layout, const uint8_t *before, const uint8_t *now, const Points &points,
                          Tracked &tracked);

// Keeps the features that were found again, one in each cell of the image, and adds the best Harris corner of each cell
// without.
void track_features(const cv::Mat &gray, const Tracked &tracked, Points &points);
