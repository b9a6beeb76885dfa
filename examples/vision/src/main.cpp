// stabilize: removes the shake from a clip, by the graph of paper 003 (Figure 5.8), which runs as a live graph of
// threads or, to compare with, as a loop. `stabilize --help` lists the options.

#include <csignal>
#include <cstdio>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>

#include "loop.h"
#include "memory.h"
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

void handle_interrupts()
{
    struct sigaction action = {};

    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

double cpu_seconds()
{
    rusage usage = {};
    const auto seconds = [](const timeval &time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };

    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// When the first frame comes, in a run that has a period.
uint64_t start_of(const Options &options)
{
    constexpr uint64_t TO_START_THREADS_NS = 100'000'000;
    const uint64_t now = now_ns();

    if (options.start_ns && *options.start_ns < now)
        throw std::runtime_error(cv::format("--start-at %ju: was %ju ms before the clip was in memory; start later",
                                            *options.start_ns, (now - *options.start_ns) / 1'000'000));
    return options.start_ns.value_or(now + TO_START_THREADS_NS);
}

PipelineSettings pipeline_of(const Options &options, double rate, const std::vector<cv::Mat> &frames)
{
    PipelineSettings settings = { options.period_ns.value_or(static_cast<uint64_t>(1e9 / rate)) };

    settings.replicas = options.replicas;
    settings.jitter_seed = options.jitter_seed;
    settings.scheduling = { options.policy, options.base_priority };
    if (options.policy == Scheduling::Policy::Deadline)
        settings.scheduling.runtimes_ns = estimate_runtimes(frames, options.crop, options.budget);
    if (options.period_ns) {
        settings.start_ns = start_of(options);
        if (options.duration_ns)
            settings.end_ns = *settings.start_ns + options.jobs() * settings.period_ns;
    }
    return settings;
}

// How many frames should have begun until the first node ended.
uint64_t released(const Options &options, const PipelineSettings &settings, uint64_t source_end_ns)
{
    const uint64_t start_ns = *settings.start_ns;
    const uint64_t periods = source_end_ns <= start_ns ? 0 : (source_end_ns - 1 - start_ns) / settings.period_ns + 1;

    return std::min(options.jobs(), periods);
}

// Runs the graph, and says how.
Summary run(const Graph &graph, const Options &options, double rate, const std::vector<cv::Mat> &frames, Log &log)
{
    Summary summary = {};
    std::optional<PipelineSettings> pipeline;

    summary.image = options.clip.image;
    summary.is_memory_locked = options.period_ns && lock_memory();
    if (options.is_pipelined)
        pipeline = pipeline_of(options, rate, frames);

    const Stopwatch stopwatch;
    const double cpu_before = cpu_seconds();
    PipelineRun how = {};
    if (pipeline)
        how = run_pipelined(graph, *pipeline, log);
    else
        run_sequential(graph, log);
    summary.seconds = stopwatch.us() / 1e6;
    summary.cpu_seconds = cpu_seconds() - cpu_before;

    // Behind a clip that is not cached come copies of its last frame.
    const size_t jobs = log.node_times.back().us.size();
    summary.how = pipeline ? "pipelined, replicas: " + std::to_string(how.replicas) : "sequential";
    summary.was_interrupted = stop;
    summary.completed = options.cache_frames > 0 ? jobs : jobs - LATENCY;
    summary.expected = summary.completed;
    if (options.period_ns)
        summary.expected = std::max(summary.completed, released(options, *pipeline, how.source_end_ns));
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

    if (options.jobs() != UINT64_MAX)
        log.reserve(options.jobs() + LATENCY);
    const Summary summary = run(graph, options, clip.rate(), frames, log);
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
