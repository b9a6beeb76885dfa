// stabilize: removes the shake from a clip, by the graph of paper 003 (Figure 5.8), which runs as a live graph of
// threads or, to compare with, as a loop. `stabilize --help` lists the options.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <unistd.h>

#include "clock.h"
#include "loop.h"
#include "options.h"
#include "pipelined.h"
#include "runtimes.h"
#include "sequential.h"
#include "sheet.h"
#include "summary.h"

namespace
{

// Ctrl-C ends the clip, and all that was read is finished; a second one ends the program.
std::atomic<bool> stop(false);
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not wait for a lock");

void on_interrupt(int)
{
    stop = true;
}

// For so many jobs there is memory from the start on: half an hour at 20 ms, in 45 MiB that cost nothing until used.
constexpr uint64_t RESERVED_JOBS = 100'000;

void handle_interrupts()
{
    struct sigaction action = {};

    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

PipelineSettings pipeline_of(const Options &options, const std::vector<cv::Mat> &frames)
{
    PipelineSettings settings = { options.period_ns.has_value(), options.period_ns.value_or(0) };

    settings.replicas = options.replicas;
    settings.jitter_seed = options.jitter_seed;
    if (options.gpu_name)
        settings.gpu = { *options.gpu_name, options.arbitration, options.releases_early, options.kernels_ns };
    settings.scheduling = { options.policy, options.base_priority };
    if (options.policy == Scheduling::Policy::Laxity) {
        settings.scheduling.system = options.system;
        settings.scheduling.trace = options.trace;
        if (options.system.name.empty())
            settings.scheduling.system->name = "stabilizer-" + std::to_string(getpid());
    }
    if (options.policy == Scheduling::Policy::Deadline)
        settings.scheduling.runtimes_ns = estimate_runtimes(frames, options.crop, settings, options.budget);
    settings.stop = &stop;
    settings.start_ns = options.start_ns;
    if (options.duration_ns)
        settings.span_ns = options.jobs() * settings.period_ns;
    return settings;
}

// How many frames should have begun until the first node ended.
uint64_t released(const Options &options, const PipelineRun &run)
{
    const uint64_t span_ns = std::max(run.start_ns, run.source_end_ns) - run.start_ns;

    return std::min(options.jobs(), (span_ns + *options.period_ns - 1) / *options.period_ns);
}

// Runs the graph, and says how.
Summary run(const Graph &graph, const Options &options, const std::vector<cv::Mat> &frames, Log &log)
{
    Summary summary = { options.clip.image };
    PipelineRun pipeline = {};

    if (options.is_pipelined) {
        pipeline = run_pipelined(graph, pipeline_of(options, frames), log);
        summary.how = "pipelined, replicas: " + std::to_string(pipeline.replicas);
        summary.is_memory_locked = pipeline.is_memory_locked;
        summary.seconds = pipeline.seconds;
        summary.cpu_seconds = pipeline.cpu_seconds;
    } else {
        const Meter meter;
        run_sequential(graph, log);
        summary.how = "sequential";
        summary.seconds = meter.seconds();
        summary.cpu_seconds = meter.cpu_seconds();
    }

    // Behind a clip that is not cached come copies of its last frame.
    const size_t jobs = log.node_times.back().us.size();
    summary.was_interrupted = stop;
    summary.completed = options.cache_frames > 0 ? jobs : jobs - LATENCY;
    summary.expected = options.period_ns ? std::max(jobs, released(options, pipeline)) : summary.completed;
    return summary;
}

void write_files(const Options &options, const Graph &graph, const Clip &clip, const Sink &sink, const Log &log)
{
    if (!options.csv.empty()) {
        std::vector<std::string> names;
        for (const Node &node : graph.nodes)
            names.push_back(node.name);
        write_frames(options.csv, log, names);
    }
    if (!options.times.empty())
        write_times(options.times, log);
    if (!options.shake_csv.empty())
        write_path(options.shake_csv, clip.path());
    if (!options.sheet.empty())
        write_sheet(options.sheet, options.clip, options.sheet_frame, sink.kept(), log);
}

void stabilize(const Options &options)
{
    Clip clip(options.clip, stop);
    const bool is_cached = options.cache_frames > 0;
    const std::vector<cv::Mat> frames = is_cached ? clip.read_all() : std::vector<cv::Mat>();
    if (is_cached && !options.sheet.empty() && options.sheet_frame + SHEET_FRAMES > frames.size())
        throw std::runtime_error(cv::format("--sheet: frames %ju to %ju are to be shown, but there are %zu in memory; "
                                            "choose earlier ones with --sheet-frame, or cache more",
                                            options.sheet_frame, options.sheet_frame + SHEET_FRAMES - 1,
                                            frames.size()));
    Loop loop(frames, options.jobs(), stop);
    Log log;
    Sink sink({ options.out, clip.rate(), options.clip.image, is_cached ? 0 : clip.frames_expected(),
                !options.csv.empty(), options.sheet_frame, options.sheet.empty() ? 0 : SHEET_FRAMES },
              log);
    Source &source = is_cached ? static_cast<Source &>(loop) : clip;
    const Graph graph = stabilizer(options.clip.image, options.crop, source, sink, log);

    if (!options.kernels_ns.empty() && options.kernels_ns.size() != kernels(graph))
        throw std::invalid_argument("--kernels: " + std::to_string(options.kernels_ns.size()) + " times; give one for " +
                                    "each of the " + std::to_string(kernels(graph)) + " nodes for a GPU");
    log.reserve(std::min(options.jobs(), RESERVED_JOBS) + LATENCY);
    const Summary summary = run(graph, options, frames, log);
    if (isatty(STDERR_FILENO) == 1)
        std::fputc('\n', stderr);
    options.is_json ? print_json(summary, graph, log) : print_text(summary, graph, log);
    write_files(options, graph, clip, sink, log);
}

} // namespace

int main(int argc, char **argv)
{
    // Each node is one thread, and its results do not depend on how work is split. Nothing here uses OpenCL: that takes
    // cv::UMat.
    cv::setNumThreads(1);
    handle_interrupts();
    try {
        const std::optional<Options> options = parse(argc, argv);
        if (options)
            stabilize(*options);
        return 0;
    } catch (const std::invalid_argument &error) {
        std::fprintf(stderr, "stabilize: %s\n", error.what());
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "stabilize: %s\n", error.what());
        return 1;
    }
}
