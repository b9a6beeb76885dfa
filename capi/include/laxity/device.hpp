// GPUs for C++17: soft GPUs, whose operations an arbitration puts in order. Headers only, on laxity.h, which says more.

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>

#include "laxity.hpp"

namespace laxity
{

// The soft GPUs that this process uses.
class Device
{
public:
    // `gpus` is the arbitration that decides which thread uses them when, from laxity_gpus_attach or
    // laxity_gpus_create_or_attach; nullptr: first come, first served.
    explicit Device(const laxity_device_config &config, const laxity_gpus *gpus = nullptr)
    {
        check(laxity_device_open(&config, gpus, handle_.out()));
    }

    // For the functions of laxity.h.
    const laxity_device *get() const { return handle_.get(); }

private:
    Handle<laxity_device, laxity_device_release> handle_;
};

// Memory of a GPU.
class Buffer
{
public:
    Buffer(const Device &device, size_t bytes, uint32_t gpu = 0) : size_(bytes)
    {
        check(laxity_buffer_alloc(device.get(), gpu, bytes, handle_.out()));
    }

    // For the functions of laxity.h.
    const laxity_buffer *get() const { return handle_.get(); }

    // In bytes.
    size_t size() const { return size_; }

private:
    Handle<laxity_buffer, laxity_buffer_release> handle_;
    size_t size_;
};

// A GPU kernel's view of device memory, while it runs.
class View
{
public:
    explicit View(const laxity_view *view) : view_(view) {}

    // All of a buffer, to be read.
    const void *read(const Buffer &buffer) const
    {
        const void *bytes;

        check(laxity_view_read(view_, buffer.get(), 0, buffer.size(), &bytes));
        return bytes;
    }

    // All of a buffer, to be read and written.
    void *write(const Buffer &buffer) const
    {
        void *bytes;

        check(laxity_view_write(view_, buffer.get(), 0, buffer.size(), &bytes));
        return bytes;
    }

private:
    const laxity_view *view_;
};

// The GPU as the thread of a vision graph's job uses it; the job owns it. Calls return when the GPU has completed the
// operation. The first one takes a token, if there is an arbitration.
class Gpu
{
public:
    explicit Gpu(laxity_device_thread *thread) : thread_(thread) {}

    void copy_in(const Buffer &buffer, const void *bytes, size_t size, size_t offset = 0) const
    {
        check(laxity_device_copy_in(thread_, buffer.get(), offset, bytes, size));
    }

    void copy_out(const Buffer &buffer, void *bytes, size_t size, size_t offset = 0) const
    {
        check(laxity_device_copy_out(thread_, buffer.get(), offset, bytes, size));
    }

    // Runs `kernel`, which is called with a View, on a thread of the soft GPU; the execution engine is busy for
    // `duration` at least. Throws what the kernel throws.
    template <typename F> void launch(F &&kernel, std::chrono::nanoseconds duration = {}) const
    {
        const uint64_t duration_ns = span_ns(duration, "the duration of a launch");
        struct Call {
            F &kernel;
            std::exception_ptr error;
        } call{ kernel, nullptr };
        const auto run = [](void *argument, const laxity_view *view) noexcept -> int32_t {
            Call &of_launch = *static_cast<Call *>(argument);

            try {
                of_launch.kernel(View(view));
                return 0;
            } catch (...) {
                of_launch.error = std::current_exception();
                return 1;
            }
        };
        const laxity_result result = laxity_device_launch(thread_, run, &call, duration_ns);

        if (call.error)
            std::rethrow_exception(call.error);
        check(result);
    }

    // Releases the token early, when the job needs no GPU any more. Its next operation would take another.
    void release() const { check(laxity_device_release_token(thread_)); }

    bool holds_token() const
    {
        bool holds;

        check(laxity_device_holds_token(thread_, &holds));
        return holds;
    }

    // For the functions of laxity.h.
    laxity_device_thread *get() const { return thread_; }

private:
    laxity_device_thread *thread_;
};

} // namespace laxity
