// Messages of jobs as OpenCV's matrices, in place, without a copy. Include OpenCV's core header before this one.

#pragma once

#ifndef OPENCV_CORE_HPP
#error "include <opencv2/core.hpp> before <laxity/opencv.hpp>"
#endif

#include <laxity/code.hpp>

namespace laxity
{

// The message from the node `peer` as a matrix of this size and type (CV_8UC3, ...), not to be written. Throws
// std::length_error if the message is shorter.
inline const cv::Mat input_matrix(const Job &job, const char *peer, int rows, int columns, int type, uint32_t number = 0)
{
    Values<const uint8_t> message = job.input<uint8_t>(peer, number);

    if (message.size() < CV_ELEM_SIZE(type) * static_cast<size_t>(rows) * static_cast<size_t>(columns))
        throw std::length_error(std::string("a message is too short for the matrix from ") + peer);
    return cv::Mat(rows, columns, type, const_cast<uint8_t *>(message.data()));
}

// The message to the node `peer` as a matrix that the job writes; the message is as long as the matrix. Throws
// std::length_error if the matrix does not fit.
inline cv::Mat output_matrix(const Job &job, const char *peer, int rows, int columns, int type, uint32_t number = 0)
{
    size_t bytes = CV_ELEM_SIZE(type) * static_cast<size_t>(rows) * static_cast<size_t>(columns);

    job.resize<uint8_t>(peer, bytes, number);
    return cv::Mat(rows, columns, type, job.output<uint8_t>(peer, number).data());
}

} // namespace laxity
