// stabilize: removes the shake from a clip, by the graph of paper 003 (Figure 5.8), which runs as a live graph of
// threads or, to compare with, as a loop. `stabilize --help` lists the options.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <unistd.h>

#include "options.h"
#include "pipelined.h"
#include "sequential.h"
#include "sheet.h"
#include "stopwatch.h"

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
}

// Runs the graph, and returns how many replicas there were.
uint32_t run(const Graph &graph, const Options &options, double rate, Log &log)
{
    if (options.is_pipelined)
        return run_pipelined(graph, { rate, options.replicas, options.jitter_seed }, log);
    run_sequential(graph, log);
    return 1;
}

double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);

    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void print_times(const Graph &graph, const Log &log)
{
    std::printf("%-26s %-5s %12s %12s\n", "node", "place", "median [us]", "longest [us]");
    for (size_t node = 0; node < graph.nodes.size(); node++) {
        const std::vector<double> &us = log.node_us[node];
        const char *place = graph.nodes[node].place == Place::Gpu ? "GPU" : "CPU";
        if (!us.empty())
            std::printf("%-26s %-5s %12.0f %12.0f\n", graph.nodes[node].name.c_str(), place, median(us),
                        *std::max_element(us.begin(), us.end()));
    }
}

void stabilize(const Options &options)
{
    Source source(options.source, stop);
    const cv::Size image = options.source.image;
    Log log;
    Sink sink({ options.out, source.rate(), image, source.frames_expected(), options.sheet_frame,
                options.sheet.empty() ? 0 : SHEET_FRAMES },
              log);
    const Graph graph = stabilizer(image, options.crop, source, sink, log);

    const Stopwatch stopwatch;
    const uint32_t replicas = run(graph, options, source.rate(), log);
    const double seconds = stopwatch.us() / 1e6;
    const std::string how =
        options.is_pipelined ? "pipelined, replicas: " + std::to_string(replicas) : std::string("sequential");
    if (isatty(STDERR_FILENO) == 1)
        std::fputc('\n', stderr);
    std::printf("%s%zu frames of %dx%d, %s: %.2f s, %.2f ms a frame\n", stop ? "interrupted; " : "", log.hashes.size(),
                image.width, image.height, how.c_str(), seconds,
                1000 * seconds / static_cast<double>(log.hashes.size()));
    print_times(graph, log);

    if (!options.csv.empty()) {
        std::vector<std::string> names;
        for (const Node &node : graph.nodes)
            names.push_back(node.name);
        write_frames(options.csv, log, names);
    }
    if (!options.shake_csv.empty())
        write_path(options.shake_csv, source.path());
    if (!options.sheet.empty())
        write_sheet(options.sheet, options.source, options.sheet_frame, sink.kept(), log);
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
