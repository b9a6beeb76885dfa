// Laxity's C interface, with exceptions and destructors.

#pragma once

#include <laxity.h>
#include <stdexcept>

// Throws std::runtime_error with what Laxity says, if it failed.
inline void check(laxity_result result)
{
    if (result != LAXITY_OK)
        throw std::runtime_error(laxity_last_error()->message);
}

// Releases what Laxity lends.
template <typename T, laxity_result (*release)(T **)> class Handle
{
public:
    Handle() = default;
    Handle(Handle &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { release(&handle_); }

    operator T *() const { return handle_; }
    T **out() { return &handle_; }

private:
    T *handle_ = nullptr;
};
