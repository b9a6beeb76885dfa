// Nodes that copy and transform images. Results are written in place: they have the size and type that they need.

#pragma once

#include "data.h"

// Copies the color image, which is corrected when the frames behind it are known.
void duplicate(const cv::Mat &color, cv::Mat copy);

void convert_to_grayscale(const cv::Mat &color, cv::Mat gray);

// Transforms the frame by its correction, and enlarges it so that `crop` of each side is out of the picture.
void warp_perspective(const cv::Mat &frame, const Matrix &correction, double crop, cv::Mat stabilized);
