// The stabilizer as a graph: which nodes there are, and what each of them reads and writes. How it is run is not said
// here; see sequential.h and pipelined.h.

#pragma once

#include <functional>
#include <string>

#include "data.h"
#include "log.h"
#include "sink.h"
#include "source.h"

// Memory that nodes share. If `depth` is not 0 it is a delay: the values of so many jobs before can be read, too, which
// are `initial` at first, or zeros if that is empty.
struct Object {
    std::string name;
    size_t bytes;
    uint32_t depth = 0;
    std::vector<uint8_t> initial = {};
};

// What a node does with an object: reads what was written `ago` jobs ago (0: in the same job of the graph), or writes
// all of it.
struct Access {
    std::string object;
    bool is_write;
    uint32_t ago = 0;
};

// Where the objects of a job are, in the order of the node's accesses.
class Arguments
{
public:
    explicit Arguments(std::vector<void *> addresses) : addresses_(std::move(addresses)) {}

    template <typename T> const T &in(size_t access) const { return *static_cast<const T *>(addresses_.at(access)); }
    template <typename T> T &out(size_t access) const { return *static_cast<T *>(addresses_.at(access)); }
    const uint8_t *bytes_in(size_t access) const { return &in<uint8_t>(access); }
    uint8_t *bytes_out(size_t access) const { return &out<uint8_t>(access); }

private:
    std::vector<void *> addresses_;
};

// Work for a GPU (for now the CPU does it) touches nothing but its arguments. So those that are read can be copied to a
// device before it, and those that are written can be copied back after it.
enum class Place { Cpu, Gpu };

struct Node {
    std::string name;
    Place place;
    std::vector<Access> accesses;
    std::function<void(const Arguments &)> work;
    // Only for a source: whether there is another job.
    std::function<bool()> has_more = nullptr;
};

struct Graph {
    std::vector<Object> objects;
    // Each after those whose results of the same job it reads.
    std::vector<Node> nodes;
};

// The video stabilizer of the VisionWorks demo. Images are `image` large; `crop` of each side is cut off (and the rest
// enlarged), to hide that nothing is known beyond the edges. The graph refers to the others while it is there.
Graph stabilizer(cv::Size image, double crop, Source &source, Sink &sink, Log &log);
