#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

// Threads that are ready wait here until all are, and someone lets them go on.
class Gate
{
public:
    // Called by each thread.
    void pass()
    {
        std::unique_lock<std::mutex> lock(mutex_);

        ready_++;
        changed_.notify_all();
        changed_.wait(lock, [this] { return is_open_; });
    }

    void wait_for(size_t threads)
    {
        std::unique_lock<std::mutex> lock(mutex_);

        changed_.wait(lock, [&] { return ready_ == threads; });
    }

    void open()
    {
        const std::lock_guard<std::mutex> lock(mutex_);

        is_open_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t ready_ = 0;
    bool is_open_ = false;
};
