// Laxity for C++17: what vx.hpp and device.hpp have in common. Headers only, on laxity.h.

#pragma once

#include <cstddef>
#include <laxity.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace laxity
{

// A call that failed: what() says what went wrong, with names, and the way out.
class Error : public std::runtime_error
{
public:
    Error(laxity_result result, const std::string &message, std::string node = {})
        : std::runtime_error(message), result_(result), node_(std::move(node))
    {
    }

    // The number by which programs tell errors apart.
    laxity_result result() const { return result_; }

    // The node in question, or nothing.
    const std::string &node() const { return node_; }

private:
    laxity_result result_;
    std::string node_;
};

// Why the last call of this thread failed.
inline Error last_error()
{
    const laxity_error *error = laxity_last_error();

    return Error(error->result, error->message, error->node ? error->node : "");
}

// Throws what a call answers with.
inline void check(laxity_result result)
{
    if (result != LAXITY_OK)
        throw last_error();
}

// Owns what a handle stands for.
template <typename T, laxity_result (*release)(T **)> class Handle
{
public:
    Handle() = default;
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { release(&handle_); }

    // For the functions of laxity.h.
    T *get() const { return handle_; }

    // Where a function of laxity.h puts one, or takes it away.
    T **out() { return &handle_; }

private:
    T *handle_ = nullptr;
};

// Consecutive values that somebody else owns.
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
