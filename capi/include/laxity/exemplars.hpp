// The types of data objects of vision graphs, and the views that jobs get of them. Included by vx.hpp.

#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "laxity.hpp"

// An exemplar E has
//   E::Reading, E::Writing   the views of a job that reads, and of one that writes
//   bytes()                  the size of an object
//   add(...)                 adds one to a graph
//   reading(p), writing(p)   a view of the bytes() bytes at p
namespace laxity::vx
{

// Whether values of T can be in memory that threads share, as bytes.
template <typename T>
inline constexpr bool is_data = std::is_trivially_copyable_v<T> &&std::is_standard_layout_v<T> && alignof(T) <= 64;

// Adds an object of so many bytes.
inline uint32_t add_bytes(laxity_vx_graph *graph, const char *name, size_t bytes, uint32_t slots, const void *initial)
{
    uint32_t object;

    check(laxity_vx_graph_object(graph, name, bytes, slots, initial, &object));
    return object;
}

// So many bytes.
class Bytes
{
public:
    using Reading = Span<const uint8_t>;
    using Writing = Span<uint8_t>;

    explicit Bytes(size_t size) : size_(size) {}

    size_t bytes() const { return size_; }
    uint32_t add(laxity_vx_graph *graph, const char *name, uint32_t slots, const void *initial) const
    {
        return add_bytes(graph, name, size_, slots, initial);
    }
    Reading reading(const void *place) const { return { static_cast<const uint8_t *>(place), size_ }; }
    Writing writing(void *place) const { return { static_cast<uint8_t *>(place), size_ }; }

private:
    size_t size_;
};

// One value of T.
template <typename T> class Value
{
    static_assert(is_data<T>, "objects are bytes that threads share: no pointers of their own, no virtual functions");

public:
    using Reading = const T &;
    using Writing = T &;

    size_t bytes() const { return sizeof(T); }
    uint32_t add(laxity_vx_graph *graph, const char *name, uint32_t slots, const void *initial) const
    {
        return add_bytes(graph, name, sizeof(T), slots, initial);
    }
    Reading reading(const void *place) const { return *static_cast<const T *>(place); }
    Writing writing(void *place) const { return *static_cast<T *>(place); }
};

// The items of an array, to be changed.
template <typename T> class Items
{
public:
    Items(void *place, size_t capacity) : place_(static_cast<uint8_t *>(place)), capacity_(capacity) {}

    size_t size() const
    {
        uint64_t count;

        std::memcpy(&count, place_, sizeof(count));
        return count < capacity_ ? static_cast<size_t>(count) : capacity_;
    }
    size_t capacity() const { return capacity_; }
    T *data() const { return reinterpret_cast<T *>(place_ + LAXITY_VX_ARRAY_ITEMS); }
    T *begin() const { return data(); }
    T *end() const { return data() + size(); }
    T &operator[](size_t index) const { return data()[index]; }

    // Adds an item, and returns whether there was room for it.
    [[nodiscard]] bool push_back(const T &item) const
    {
        const size_t count = size();

        if (count == capacity_)
            return false;
        data()[count] = item;
        set_size(count + 1);
        return true;
    }

    // Keeps the first `count` items at most.
    void truncate(size_t count) const
    {
        if (count < size())
            set_size(count);
    }

private:
    void set_size(uint64_t count) const { std::memcpy(place_, &count, sizeof(count)); }

    uint8_t *place_;
    size_t capacity_;
};

// Up to so many items of T. An output is empty at first.
template <typename T> class Array
{
    static_assert(is_data<T>, "objects are bytes that threads share: no pointers of their own, no virtual functions");

public:
    using Reading = Span<const T>;
    using Writing = Items<T>;

    explicit Array(size_t capacity) : capacity_(capacity) {}

    size_t bytes() const { return LAXITY_VX_ARRAY_ITEMS + capacity_ * sizeof(T); }
    uint32_t add(laxity_vx_graph *graph, const char *name, uint32_t slots, const void *initial) const
    {
        uint32_t object;

        check(laxity_vx_graph_array(graph, name, sizeof(T), capacity_, slots, initial, &object));
        return object;
    }
    Reading reading(const void *place) const
    {
        // Nothing is written through it.
        const Items<T> items(const_cast<void *>(place), capacity_);

        return { items.data(), items.size() };
    }
    Writing writing(void *place) const { return { place, capacity_ }; }

private:
    size_t capacity_;
};

// Values in rows and columns, row by row.
template <typename T> class Table
{
public:
    Table(T *data, size_t rows, size_t columns) : data_(data), rows_(rows), columns_(columns) {}

    T &operator()(size_t row, size_t column) const { return data_[row * columns_ + column]; }
    T *row(size_t row) const { return data_ + row * columns_; }
    T *data() const { return data_; }
    size_t rows() const { return rows_; }
    size_t columns() const { return columns_; }

private:
    T *data_;
    size_t rows_;
    size_t columns_;
};

// So many rows of so many values of T: a matrix, or an image of pixels T.
template <typename T> class Matrix
{
    static_assert(is_data<T>, "objects are bytes that threads share: no pointers of their own, no virtual functions");

public:
    using Reading = Table<const T>;
    using Writing = Table<T>;

    Matrix(size_t rows, size_t columns) : rows_(rows), columns_(columns) {}

    // That of one that is larger than memory can be is SIZE_MAX, which a graph refuses.
    size_t bytes() const
    {
        const size_t most = SIZE_MAX / sizeof(T);

        return rows_ > 0 && columns_ > most / rows_ ? SIZE_MAX : rows_ * columns_ * sizeof(T);
    }
    uint32_t add(laxity_vx_graph *graph, const char *name, uint32_t slots, const void *initial) const
    {
        return add_bytes(graph, name, bytes(), slots, initial);
    }
    Reading reading(const void *place) const { return { static_cast<const T *>(place), rows_, columns_ }; }
    Writing writing(void *place) const { return { static_cast<T *>(place), rows_, columns_ }; }

private:
    size_t rows_;
    size_t columns_;
};

inline Bytes bytes(size_t size)
{
    return Bytes(size);
}

template <typename T> Value<T> value()
{
    return {};
}

template <typename T> Array<T> array(size_t capacity)
{
    return Array<T>(capacity);
}

template <typename T> Matrix<T> matrix(size_t rows, size_t columns)
{
    return Matrix<T>(rows, columns);
}

// Pixels are T: uint8_t for grey, std::array<uint8_t, 3> for colours.
template <typename T> Matrix<T> image(size_t width, size_t height)
{
    return Matrix<T>(height, width);
}

} // namespace laxity::vx
