#include "runtimes.h"

#include <algorithm>
#include <atomic>

#include "graph.h"
#include "loop.h"
#include "sequential.h"
#include "statistics.h"

namespace
{

constexpr uint64_t FRAMES = 60;
constexpr double BETWEEN_JOBS_US = 50; // a few calls to Linux, generously

} // namespace

std::vector<uint64_t> estimate_runtimes(const std::vector<cv::Mat> &frames, double crop, double factor)
{
    const std::atomic<bool> stop(false);
    const cv::Size image = frames.at(0).size();
    std::vector<uint64_t> runtimes_ns;
    Log log;
    Loop source(frames, FRAMES, stop);
    Sink sink({ "", 1, image, 0, false }, log);

    run_sequential(stabilizer(image, crop, source, sink, log), log);
    for (const NodeTimes &times : log.node_times)
        runtimes_ns.push_back(static_cast<uint64_t>(1000 * (factor * median(times.cpu_us) + BETWEEN_JOBS_US)));
    return runtimes_ns;
}
