#include "sequential.h"

#include <algorithm>
#include <stdexcept>

namespace
{

// The values of an object: one, or as many more as its delay is deep, in turns.
class Values
{
public:
    explicit Values(const Object &object) : values_(object.depth + 1, object.initial)
    {
        for (std::vector<uint8_t> &value : values_)
            value.resize(object.bytes);
    }

    void *of(uint64_t job, uint32_t ago)
    {
        // Before the first job all values are the initial one, whichever of them is taken.
        return values_[(job + values_.size() - ago) % values_.size()].data();
    }

private:
    std::vector<std::vector<uint8_t>> values_;
};

size_t position(const Graph &graph, const std::string &object)
{
    const auto found = std::find_if(graph.objects.begin(), graph.objects.end(),
                                    [&](const Object &other) { return other.name == object; });

    if (found == graph.objects.end())
        throw std::logic_error("no object is called " + object);
    return static_cast<size_t>(found - graph.objects.begin());
}

} // namespace

void run_sequential(const Graph &graph, Log &log)
{
    std::vector<Values> objects(graph.objects.begin(), graph.objects.end());
    const auto has_more = [&] {
        return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                           [](const Node &node) { return !node.has_more || node.has_more(); });
    };

    for (uint64_t job = 0; has_more(); job++) {
        for (size_t number = 0; number < graph.nodes.size(); number++) {
            const Node &node = graph.nodes[number];
            std::vector<void *> addresses;
            for (const Access &access : node.accesses)
                addresses.push_back(objects[position(graph, access.object)].of(job, access.ago));
            const Stopwatch stopwatch;
            node.work(Arguments(std::move(addresses)));
            log.node_times[number].add(stopwatch);
        }
    }
}
