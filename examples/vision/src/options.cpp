#include "options.h"

#include <algorithm>
#include <cstdio>
#include <getopt.h>
#include <stdexcept>

#include "values.h"

namespace
{

const char USAGE[] = R"(Usage: stabilize [OPTION]... CLIP
Removes the shake from a clip.

How to run it:
  --pipelined          each node is a thread of a live graph (what happens if nothing is said)
  --replicas N         how many frames are worked on at a time; otherwise the depth of the graph
  --jitter SEED        nodes pause at random, which changes nothing but the time it takes
  --sequential         a plain loop

In real time:
  --period TIME        a frame comes once in 20ms, for instance; the clip is cached (see below)
  --duration TIME      for so long, and frames that have not begun by then are dropped; otherwise for --frames, or
                       until Ctrl-C
  --start-at NS        the first frame comes then (CLOCK_MONOTONIC); otherwise when the clip is in memory
  --scheduler NAME     of the threads: other (what happens if nothing is said), fifo, deadline or laxity
  --base-priority N    of the first node under fifo, deeper ones have more; 1 if nothing is said
  --budget FACTOR      under deadline a node may run so many times the median of its CPU time, measured before the
                       start, in each period; 2 if nothing is said

Under Laxity's own scheduler (--scheduler laxity), earliest deadline first:
  --system NAME        tasks of the system of that name, which the first process that names it creates; one of its own if
                       nothing is said
  --clusters LIST      the CPUs of its clusters, as 0-1 or "0;1"; one cluster of all CPUs if nothing is said
  --cluster N          the nodes are in cluster N, from 0; 0 if nothing is said
  --tokens N           of the GPU, which the system then shares out; otherwise first come, first served
  --fifo-length N      of a token's queue; as short as the CPUs allow if nothing is said
  --virtual-cpus N     the tokens are those of a machine of N CPUs, for which the system's stand
  --engine-order NAME  of those that wait for an engine: fifo (what happens if nothing is said) or priority
  --trace FILE         write what happens, with the links of the policy, for `laxity trace`; without a GPU only

On a GPU:
  --gpu none|soft[:NAME]  where nodes for a GPU work: on CPUs (what happens if nothing is said), or on the soft GPU of
                       that name, which processes share
  --arbitration NAME   made by `laxity gpu create NAME`: decides which job gets tokens and engines of the soft GPU
                       when; otherwise first come, first served
  --kernels LIST       operations only take time: kernels so much as LIST says, a time for each node for a GPU in their
                       order, as 40us,60us; CPUs do all of the work
  --release-early      nodes that only copy let go of the token then, not at the end of their job

What comes in:
  --size WxH           resize frames; 640x360 if nothing is said
  --frames N           end after N frames
  --cache-frames N     decode N frames before the start, and use them again and again; 200 if there is a --period
  --shake SEED         shake the clip, by a random walk of translation and rotation
  --shake-keep PART    how much of it is left one frame later, 0 to 1; 0.5 if nothing is said

What goes out:
  --out FILE           stabilized frames: a video (.avi) or images (frame%04d.png)
  --crop PART          cut off so much of each side, 0 to 0.4; 0.1 if nothing is said
  --csv FILE           by frame: hash, motion, correction, time of each node
  --times FILE         by frame: when it was released and when it was complete, in us of CLOCK_MONOTONIC
  --shake-csv FILE     by frame: the path of the shake
  --sheet FILE         an image of frames before and after
  --sheet-frame N      that begins at frame N; 100 if nothing is said
  --summary FORM       text (what happens if nothing is said) or json
  --help
)";

constexpr uint64_t CACHE_FRAMES = 200;

enum Letter {
    PIPELINED,
    REPLICAS,
    JITTER,
    SEQUENTIAL,
    PERIOD,
    DURATION,
    START_AT,
    SCHEDULER,
    BASE_PRIORITY,
    BUDGET,
    SYSTEM,
    CLUSTERS,
    CLUSTER,
    TOKENS,
    FIFO_LENGTH,
    VIRTUAL_CPUS,
    ENGINE_ORDER,
    TRACE,
    GPU,
    ARBITRATION,
    KERNELS,
    RELEASE_EARLY,
    SIZE,
    FRAMES,
    CACHE,
    SHAKE,
    SHAKE_KEEP,
    OUT,
    CROP,
    CSV,
    TIMES,
    SHAKE_CSV,
    SHEET,
    SHEET_FRAME,
    SUMMARY,
    HELP
};

const option LONG[] = {
    { "pipelined", no_argument, nullptr, PIPELINED },
    { "replicas", required_argument, nullptr, REPLICAS },
    { "jitter", required_argument, nullptr, JITTER },
    { "sequential", no_argument, nullptr, SEQUENTIAL },
    { "period", required_argument, nullptr, PERIOD },
    { "duration", required_argument, nullptr, DURATION },
    { "start-at", required_argument, nullptr, START_AT },
    { "scheduler", required_argument, nullptr, SCHEDULER },
    { "base-priority", required_argument, nullptr, BASE_PRIORITY },
    { "budget", required_argument, nullptr, BUDGET },
    { "system", required_argument, nullptr, SYSTEM },
    { "clusters", required_argument, nullptr, CLUSTERS },
    { "cluster", required_argument, nullptr, CLUSTER },
    { "tokens", required_argument, nullptr, TOKENS },
    { "fifo-length", required_argument, nullptr, FIFO_LENGTH },
    { "virtual-cpus", required_argument, nullptr, VIRTUAL_CPUS },
    { "engine-order", required_argument, nullptr, ENGINE_ORDER },
    { "trace", required_argument, nullptr, TRACE },
    { "gpu", required_argument, nullptr, GPU },
    { "arbitration", required_argument, nullptr, ARBITRATION },
    { "kernels", required_argument, nullptr, KERNELS },
    { "release-early", no_argument, nullptr, RELEASE_EARLY },
    { "size", required_argument, nullptr, SIZE },
    { "frames", required_argument, nullptr, FRAMES },
    { "cache-frames", required_argument, nullptr, CACHE },
    { "shake", required_argument, nullptr, SHAKE },
    { "shake-keep", required_argument, nullptr, SHAKE_KEEP },
    { "out", required_argument, nullptr, OUT },
    { "crop", required_argument, nullptr, CROP },
    { "csv", required_argument, nullptr, CSV },
    { "times", required_argument, nullptr, TIMES },
    { "shake-csv", required_argument, nullptr, SHAKE_CSV },
    { "sheet", required_argument, nullptr, SHEET },
    { "sheet-frame", required_argument, nullptr, SHEET_FRAME },
    { "summary", required_argument, nullptr, SUMMARY },
    { "help", no_argument, nullptr, HELP },
    {},
};

// The name in soft:NAME; nothing for none.
std::optional<std::string> gpu_name(const std::string &option, const std::string &value)
{
    const size_t colon = std::min(value.find(':'), value.size());
    const size_t kind = to_choice(option, value.substr(0, colon), { "none", "soft" });

    if (kind == 0 && colon < value.size())
        to_choice(option, value, { "none" });
    if (kind == 0)
        return {};
    return colon + 1 < value.size() ? value.substr(colon + 1) : "stabilizer";
}

// The list with commas in between.
std::vector<uint64_t> to_spans(const std::string &option, const std::string &value)
{
    std::vector<uint64_t> spans;

    for (size_t start = 0; start <= value.size();) {
        const size_t end = std::min(value.find(',', start), value.size());
        spans.push_back(to_ns(option, value.substr(start, end - start)));
        start = end + 1;
    }
    return spans;
}

void set(Options &options, int letter, const std::string &name, const std::string &value)
{
    switch (letter) {
    case PIPELINED:
        options.is_pipelined = true;
        break;
    case SEQUENTIAL:
        options.is_pipelined = false;
        break;
    case REPLICAS:
        options.replicas = static_cast<uint32_t>(to_whole(name, value, 1, 1000));
        break;
    case JITTER:
        options.jitter_seed = to_whole(name, value, 0, UINT64_MAX);
        break;
    case PERIOD:
        options.period_ns = to_ns(name, value);
        break;
    case DURATION:
        options.duration_ns = to_ns(name, value);
        break;
    case START_AT:
        options.start_ns = to_whole(name, value, 1, INT64_MAX);
        break;
    case SCHEDULER:
        options.policy = static_cast<Scheduling::Policy>(to_choice(name, value, { "other", "fifo", "deadline", "laxity" }));
        break;
    case BASE_PRIORITY:
        options.base_priority = static_cast<uint8_t>(to_whole(name, value, 1, 97));
        break;
    case BUDGET:
        options.budget = to_number(name, value, 0.1, 100);
        break;
    case SYSTEM:
        options.system.name = value;
        break;
    case CLUSTERS:
        options.system.clusters = value;
        break;
    case CLUSTER:
        options.system.cluster = static_cast<uint32_t>(to_whole(name, value, 0, 255));
        break;
    case TOKENS:
        options.system.tokens = static_cast<uint16_t>(to_whole(name, value, 1, 1000));
        break;
    case FIFO_LENGTH:
        options.system.fifo_length = static_cast<uint16_t>(to_whole(name, value, 1, 1000));
        break;
    case VIRTUAL_CPUS:
        options.system.virtual_cpus = static_cast<uint16_t>(to_whole(name, value, 1, 1000));
        break;
    case ENGINE_ORDER:
        options.system.engines_by_priority = to_choice(name, value, { "fifo", "priority" }) == 1;
        break;
    case TRACE:
        options.trace = value;
        break;
    case KERNELS:
        options.kernels_ns = to_spans(name, value);
        break;
    case GPU:
        options.gpu_name = gpu_name(name, value);
        break;
    case ARBITRATION:
        options.arbitration = value;
        break;
    case RELEASE_EARLY:
        options.releases_early = true;
        break;
    case SIZE:
        options.clip.image = to_size(name, value);
        break;
    case FRAMES:
        options.frames = to_whole(name, value, 1, UINT64_MAX);
        break;
    case CACHE:
        options.cache_frames = to_whole(name, value, 1, UINT32_MAX);
        break;
    case SHAKE:
        options.clip.shake_seed = to_whole(name, value, 0, UINT64_MAX);
        break;
    case SHAKE_KEEP:
        options.clip.shake_keep = to_number(name, value, 0, 1);
        break;
    case OUT:
        options.out = value;
        break;
    case CROP:
        options.crop = to_number(name, value, 0, 0.4);
        break;
    case CSV:
        options.csv = value;
        break;
    case TIMES:
        options.times = value;
        break;
    case SHAKE_CSV:
        options.shake_csv = value;
        break;
    case SHEET:
        options.sheet = value;
        break;
    case SHEET_FRAME:
        options.sheet_frame = to_whole(name, value, 0, UINT32_MAX);
        break;
    case SUMMARY:
        options.is_json = to_choice(name, value, { "text", "json" }) == 1;
        break;
    }
}

void refuse_if(bool condition, const char *reason)
{
    if (condition)
        throw std::invalid_argument(reason);
}

// What options say together.
void check(const Options &options)
{
    const bool is_fifo = options.policy == Scheduling::Policy::Fifo;
    const bool is_deadline = options.policy == Scheduling::Policy::Deadline;
    const bool is_laxity = options.policy == Scheduling::Policy::Laxity;

    refuse_if(!options.is_pipelined && (options.replicas != 0 || options.jitter_seed),
              "--replicas and --jitter are of --pipelined; leave --sequential out, or them");
    refuse_if(!options.is_pipelined && (options.period_ns || options.policy != Scheduling::Policy::Other),
              "--period and --scheduler are of --pipelined; leave --sequential out, or them");
    refuse_if(!options.is_pipelined && options.gpu_name, "--gpu is of --pipelined; leave --sequential out, or it");
    refuse_if(!options.gpu_name && (!options.arbitration.empty() || options.releases_early),
              "--arbitration and --release-early are about a GPU; add --gpu soft");
    refuse_if(!options.period_ns && (options.duration_ns || options.start_ns || !options.times.empty() || is_deadline),
              "--duration, --start-at, --times and --scheduler deadline are about a --period; add it");
    refuse_if(options.duration_ns && *options.duration_ns < *options.period_ns,
              "--duration is less than one --period, and no frame would come; lengthen it");
    refuse_if(!is_laxity && (!options.system.name.empty() || !options.system.clusters.empty() ||
                             options.system.cluster > 0 || options.system.tokens > 0 || !options.trace.empty()),
              "--system, --clusters, --cluster, --tokens and --trace are of --scheduler laxity; add it");
    refuse_if(options.system.tokens == 0 && (options.system.fifo_length > 0 || options.system.virtual_cpus > 0 ||
                                             options.system.engines_by_priority),
              "--fifo-length, --virtual-cpus and --engine-order are about --tokens; add them");
    refuse_if(!options.gpu_name && (options.system.tokens > 0 || !options.kernels_ns.empty()),
              "--tokens and --kernels are about a GPU; add --gpu soft");
    refuse_if(is_laxity && !options.arbitration.empty(),
              "--arbitration: the system shares the GPU out under --scheduler laxity; use --tokens");
    refuse_if(!is_fifo && options.base_priority != 1, "--base-priority is of --scheduler fifo; add it");
    refuse_if(!options.period_ns && options.cache_frames > 0 && options.frames == UINT64_MAX,
              "--cache-frames: has no end by itself; add --frames N, or a --period");
    refuse_if(!options.shake_csv.empty() && !options.clip.shake_seed,
              "--shake-csv: there is no shake whose path could be written; add --shake SEED");
}

} // namespace

uint64_t Options::jobs() const
{
    return duration_ns ? std::min(frames, *duration_ns / *period_ns) : frames;
}

std::optional<Options> parse(int argc, char **argv)
{
    Options options;
    int letter, position = 0;

    options.clip.image = { 640, 360 };
    opterr = 0;
    while ((letter = getopt_long(argc, argv, ":", LONG, &position)) != -1) {
        if (letter == HELP) {
            std::fputs(USAGE, stdout);
            return {};
        }
        if (letter == ':')
            throw std::invalid_argument(std::string(argv[optind - 1]) + ": needs a value; see --help");
        if (letter == '?')
            throw std::invalid_argument(std::string(argv[optind - 1]) + ": is no option; see --help");
        set(options, letter, LONG[position].name, optarg ? optarg : "");
    }
    if (optind != argc - 1)
        throw std::invalid_argument(std::to_string(argc - optind) + " clips: name one; see --help");
    options.clip.clip = argv[optind];
    check(options);
    if (options.period_ns && options.cache_frames == 0)
        options.cache_frames = CACHE_FRAMES;
    options.clip.frames = options.cache_frames > 0 ? options.cache_frames : options.frames;
    return options;
}
