// The newest value of a latest-value edge between two nodes of this library. `laxity run` hands messages of token edges to
// code, but not these values yet; the order is the edge's own: a value is published when its job is about to end, and taken
// when the job of the reader begins.

#pragma once

#include <pthread.h>

#include <optional>
#include <stdexcept>

template <typename T> class Latest
{
public:
    // The thread that holds the lock inherits the priority of one that waits for it, so that no wait is longer than a copy.
    Latest()
    {
        pthread_mutexattr_t attributes;

        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        if (pthread_mutex_init(&mutex_, &attributes) != 0)
            throw std::runtime_error("no mutex with priority inheritance");
        pthread_mutexattr_destroy(&attributes);
    }

    void publish(const T &value)
    {
        pthread_mutex_lock(&mutex_);
        value_ = value;
        pthread_mutex_unlock(&mutex_);
    }

    // None before the first.
    std::optional<T> take()
    {
        pthread_mutex_lock(&mutex_);
        std::optional<T> value = value_;
        pthread_mutex_unlock(&mutex_);
        return value;
    }

private:
    pthread_mutex_t mutex_;
    std::optional<T> value_;
};
