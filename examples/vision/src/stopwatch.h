#pragma once

#include <chrono>

// The time since it was made.
class Stopwatch
{
public:
    double us() const
    {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
