// Where the frames of a graph come from.

#pragma once

#include <opencv2/core.hpp>

class Source
{
public:
    virtual ~Source() = default;

    // Whether read() may be called.
    virtual bool has_more() const = 0;

    // The next frame, into an image that has the size and 3 channels of 8 bits.
    virtual void read(cv::Mat frame) = 0;
};
