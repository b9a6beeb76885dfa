// Code that jobs call, for C++17: laxity/code.h with views of messages. Headers only; links nothing.
//
//     LAXITY_CODE_LIBRARY
//
//     LAXITY_CODE int fuse(laxity_code_call *call)
//     {
//         return laxity::run(call, [](laxity::Job &job) {
//             laxity::Values<const float> scan = job.input<float>("lidar");
//             laxity::Values<uint8_t> map = job.output<uint8_t>("planner");
//             ...
//         });
//     }

#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <laxity/code.h>
#include <stdexcept>
#include <string>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace laxity
{

// Values of a message, in place, valid until the job ends.
template <typename T> class Values
{
public:
    Values(T *data, size_t size) : data_(data), size_(size) {}

    T *data() const { return data_; }
    size_t size() const { return size_; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size_; }
    T &operator[](size_t index) const { return data_[index]; }

private:
    T *data_;
    size_t size_;
};

// A step of a job.
class Job
{
public:
    explicit Job(laxity_code_call *call) : call_(call) {}

    // What laxity/code.h has of it.
    const laxity_code_call &call() const { return *call_; }

    // The number of the job, from 0.
    uint64_t index() const { return call_->job; }

    // Whether it is before time 0: it has no messages then.
    bool is_warm_up() const { return call_->job == LAXITY_CODE_WARM_UP; }

    // Which of the steps that call code, from 0.
    uint32_t step() const { return call_->step; }

    // The state that `init` made, or the program bound.
    template <typename T> T &state() const { return *static_cast<T *>(call_->state); }

    // Messages that come from the node `peer`.
    uint32_t count(const char *peer) const { return find(call_->inputs, call_->input_count, peer).count; }

    // Message `number` of those that come from the node `peer`. Throws std::out_of_range if there is none.
    template <typename T> Values<const T> input(const char *peer, uint32_t number = 0) const
    {
        const laxity_code_message &message = at(find(call_->inputs, call_->input_count, peer), number);

        return {static_cast<const T *>(message.data), message.length / sizeof(T)};
    }

    // Message `number` of those that go to the node `peer`, as long as can be. Throws std::out_of_range if there is none.
    template <typename T> Values<T> output(const char *peer, uint32_t number = 0) const
    {
        const laxity_code_message &message = at(find(call_->outputs, call_->output_count, peer), number);

        return {static_cast<T *>(message.data), message.capacity / sizeof(T)};
    }

    // The message has `size` values of type T. Throws std::length_error if they do not fit.
    template <typename T> void resize(const char *peer, size_t size, uint32_t number = 0) const
    {
        laxity_code_message &message = at(find(call_->outputs, call_->output_count, peer), number);

        if (size > message.capacity / sizeof(T))
            throw std::length_error(std::string("too many values for a message to ") + peer);
        message.length = size * sizeof(T);
    }

private:
    static const laxity_code_edge &find(const laxity_code_edge *edges, uint32_t count, const char *peer)
    {
        for (uint32_t number = 0; number < count; number++)
            if (std::strcmp(edges[number].peer, peer) == 0)
                return edges[number];
        throw std::out_of_range(std::string("no edge with messages has the peer ") + peer);
    }

    static laxity_code_message &at(const laxity_code_edge &edge, uint32_t number)
    {
        if (number >= edge.count)
            throw std::out_of_range(std::string("a job has fewer messages with ") + edge.peer);
        return edge.messages[number];
    }

    laxity_code_call *call_;
};

// Calls `body` with the job; an exception is told on standard error, and ends the run. None leaves it; pthread_exit does.
template <typename Body> int run(laxity_code_call *call, Body &&body)
{
    try {
        Job job(call);

        body(job);
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: job %llu: %s\n", call->task, static_cast<unsigned long long>(call->job), error.what());
#ifdef __GLIBCXX__
    } catch (abi::__forced_unwind &) {
        // By pthread_exit, which must go on.
        throw;
#endif
    } catch (...) {
        std::fprintf(stderr, "%s: job %llu: an exception\n", call->task, static_cast<unsigned long long>(call->job));
    }
    return 1;
}

} // namespace laxity
