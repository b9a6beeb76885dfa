#pragma once

#include <algorithm>
#include <vector>

// The upper median of values, of which there is at least one.
inline double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);

    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The largest of values, of which there is at least one.
inline double largest(const std::vector<double> &values)
{
    return *std::max_element(values.begin(), values.end());
}
