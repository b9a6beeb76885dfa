#include "runtimes.h"

#include <atomic>

#include "loop.h"
#include "statistics.h"

namespace
{

constexpr uint64_t FRAMES = 60;
constexpr double JITTER_US = 150; // interrupts, and whatever else delays a thread without being its work

} // namespace

std::vector<uint64_t> estimate_runtimes(const std::vector<cv::Mat> &frames, double crop,
                                        const PipelineSettings &settings, double factor)
{
    const std::atomic<bool> stop(false);
    const cv::Size image = frames.at(0).size();
    PipelineSettings at_once;
    std::vector<uint64_t> runtimes_ns;
    Log log;
    Loop source(frames, FRAMES, stop);
    Sink sink({ "", 1, image, 0, false }, log);

    at_once.gpu = settings.gpu;
    at_once.replicas = settings.replicas;
    run_pipelined(stabilizer(image, crop, source, sink, log), at_once, log);
    for (const NodeTimes &times : log.node_times)
        runtimes_ns.push_back(static_cast<uint64_t>(1000 * (factor * median(times.thread_us) + JITTER_US)));
    return runtimes_ns;
}
