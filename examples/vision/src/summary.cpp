#include "summary.h"

#include <cstdio>

#include "statistics.h"

namespace
{

const char *place_of(const Node &node)
{
    return node.place == Place::Gpu ? "GPU" : "CPU";
}

} // namespace

void print_text(const Summary &summary, const Graph &graph, const Log &log)
{
    const uint64_t dropped = summary.expected - summary.completed;

    std::printf("%s%ju frames of %dx%d, %s: %.2f s, %.2f ms a frame\n", summary.was_interrupted ? "interrupted; " : "",
                summary.completed, summary.image.width, summary.image.height, summary.how.c_str(), summary.seconds,
                1000 * summary.seconds / static_cast<double>(std::max<uint64_t>(1, summary.completed)));
    if (dropped > 0)
        std::printf("%ju frames dropped, %.2f %%\n", dropped,
                    100 * static_cast<double>(dropped) / static_cast<double>(summary.expected));
    std::printf("%-26s %-5s %12s %12s %15s\n", "node", "place", "median [us]", "longest [us]", "median CPU [us]");
    for (size_t number = 0; number < graph.nodes.size(); number++) {
        const Node &node = graph.nodes[number];
        const NodeTimes &times = log.node_times[number];
        if (!times.us.empty())
            std::printf("%-26s %-5s %12.0f %12.0f %15.0f\n", node.name.c_str(), place_of(node), median(times.us),
                        largest(times.us), median(times.cpu_us));
    }
}

void print_json(const Summary &summary, const Graph &graph, const Log &log)
{
    std::printf("{\"frames\": {\"expected\": %ju, \"completed\": %ju, \"dropped\": %ju},\n"
                " \"size\": [%d, %d], \"how\": \"%s\", \"interrupted\": %s, \"memory_locked\": %s,\n"
                " \"elapsed_s\": %.6f, \"cpu_s\": %.6f,\n \"nodes\": [",
                summary.expected, summary.completed, summary.expected - summary.completed, summary.image.width,
                summary.image.height, summary.how.c_str(), summary.was_interrupted ? "true" : "false",
                summary.is_memory_locked ? "true" : "false", summary.seconds, summary.cpu_seconds);
    for (size_t number = 0; number < graph.nodes.size(); number++) {
        const NodeTimes &times = log.node_times[number];
        std::printf("%s\n  {\"name\": \"%s\", \"place\": \"%s\"", number == 0 ? "" : ",",
                    graph.nodes[number].name.c_str(), place_of(graph.nodes[number]));
        if (!times.us.empty())
            std::printf(", \"median_us\": %.1f, \"max_us\": %.1f, \"cpu_median_us\": %.1f, \"cpu_max_us\": %.1f",
                        median(times.us), largest(times.us), median(times.cpu_us), largest(times.cpu_us));
        std::printf("}");
    }
    std::printf("]}\n");
}
