// Laxity for C++17: the common part of vx.hpp and device.hpp. Headers only, on laxity.h.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <laxity.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace laxity
{

// A call that failed: what() tells what went wrong, with names, and the way out.
class Error : public std::runtime_error
{
public:
    Error(laxity_result result, const std::string &message, std::string node = {})
        : std::runtime_error(message), result_(result), node_(std::move(node))
    {
    }

    // The number of the error.
    laxity_result result() const { return result_; }

    // The node in question, or nothing.
    const std::string &node() const { return node_; }

private:
    laxity_result result_;
    std::string node_;
};

// The error of this thread's last call that failed.
inline Error last_error()
{
    const laxity_error *error = laxity_last_error();

    return Error(error->result, error->message, error->node ? error->node : "");
}

// Throws the error of a call that failed.
inline void check(laxity_result result)
{
    if (result != LAXITY_OK)
        throw last_error();
}

// So many nanoseconds: laxity.h knows no negative spans. Throws Error for one, which `of` names.
inline uint64_t span_ns(std::chrono::nanoseconds span, const std::string &of)
{
    const auto count = span.count();

    if (count < 0)
        throw Error(LAXITY_ERROR_VALUE, of + " is " + std::to_string(count) + " ns; make it 0 ns or longer");
    return static_cast<uint64_t>(count);
}

// Owns a handle.
template <typename T, laxity_result (*release)(T **)> class Handle
{
public:
    Handle() = default;
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    // Releases the handle that it owns before it has the other's.
    Handle &operator=(Handle &&other) noexcept
    {
        if (this != &other) {
            release(&handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { release(&handle_); }

    // For the functions of laxity.h.
    T *get() const { return handle_; }

    // For functions of laxity.h that write or release a handle.
    T **out() { return &handle_; }

private:
    T *handle_ = nullptr;
};

// Consecutive values that another object owns.
template <typename T> class Span
{
public:
    Span(T *data, size_t size) : data_(data), size_(size) {}

    T *data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size_; }
    T &operator[](size_t index) const { return data_[index]; }

private:
    T *data_;
    size_t size_;
};

} // namespace laxity
