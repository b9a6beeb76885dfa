#include "options.h"

#include <cmath>
#include <cstdio>
#include <getopt.h>
#include <stdexcept>

namespace
{

const char USAGE[] = R"(Usage: stabilize [OPTION]... CLIP
Removes the shake from a clip.

How to run it:
  --pipelined          each node is a thread of a live graph (what happens if nothing is said)
  --replicas N         how many frames are worked on at a time; otherwise the depth of the graph
  --jitter SEED        nodes pause at random, which changes nothing but the time it takes
  --sequential         a plain loop

What comes in:
  --size WxH           resize frames; 640x360 if nothing is said
  --frames N           end after N frames
  --shake SEED         shake the clip, by a random walk of translation and rotation
  --shake-keep PART    how much of it is left one frame later, 0 to 1; 0.5 if nothing is said

What goes out:
  --out FILE           stabilized frames: a video (.avi) or images (frame%04d.png)
  --crop PART          cut off so much of each side, 0 to 0.4; 0.1 if nothing is said
  --csv FILE           by frame: hash, motion, correction, time of each node
  --shake-csv FILE     by frame: the path of the shake
  --sheet FILE         an image of frames before and after
  --sheet-frame N      that begins at frame N; 100 if nothing is said
  --help
)";

constexpr int SIDE_MIN = 64, SIDE_MAX = 4096; // pixels

[[noreturn]] void refuse(const std::string &option, const std::string &value, const std::string &want)
{
    throw std::invalid_argument("--" + option + " " + value + ": is not " + want);
}

uint64_t whole(const std::string &option, const std::string &value, uint64_t least, uint64_t most)
{
    const auto want = [&] { return "a whole number from " + std::to_string(least) + " to " + std::to_string(most); };

    if (value.empty() || value.size() > 20 || value.find_first_not_of("0123456789") != std::string::npos)
        refuse(option, value, want());
    try {
        const uint64_t number = std::stoull(value);
        if (number >= least && number <= most)
            return number;
    } catch (const std::out_of_range &) {
    }
    refuse(option, value, want());
}

double part(const std::string &option, const std::string &value, double most)
{
    char *end = nullptr;
    const double number = std::strtod(value.c_str(), &end);

    if (value.empty() || *end != '\0' || !(number >= 0 && number <= most))
        refuse(option, value, cv::format("a number from 0 to %g", most));
    return number;
}

cv::Size size(const std::string &option, const std::string &value)
{
    const size_t cross = value.find('x');

    if (cross == std::string::npos)
        refuse(option, value, "a width and a height, as 640x360");
    return { static_cast<int>(whole(option, value.substr(0, cross), SIDE_MIN, SIDE_MAX)),
             static_cast<int>(whole(option, value.substr(cross + 1), SIDE_MIN, SIDE_MAX)) };
}

enum Letter {
    PIPELINED,
    REPLICAS,
    JITTER,
    SEQUENTIAL,
    SIZE,
    FRAMES,
    SHAKE,
    SHAKE_KEEP,
    OUT,
    CROP,
    CSV,
    SHAKE_CSV,
    SHEET,
    SHEET_FRAME,
    HELP
};

const option LONG[] = {
    { "pipelined", no_argument, nullptr, PIPELINED }, { "replicas", required_argument, nullptr, REPLICAS },
    { "jitter", required_argument, nullptr, JITTER }, { "sequential", no_argument, nullptr, SEQUENTIAL },
    { "size", required_argument, nullptr, SIZE },     { "frames", required_argument, nullptr, FRAMES },
    { "shake", required_argument, nullptr, SHAKE },   { "shake-keep", required_argument, nullptr, SHAKE_KEEP },
    { "out", required_argument, nullptr, OUT },       { "crop", required_argument, nullptr, CROP },
    { "csv", required_argument, nullptr, CSV },       { "shake-csv", required_argument, nullptr, SHAKE_CSV },
    { "sheet", required_argument, nullptr, SHEET },   { "sheet-frame", required_argument, nullptr, SHEET_FRAME },
    { "help", no_argument, nullptr, HELP },           {},
};

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
        options.replicas = static_cast<uint32_t>(whole(name, value, 1, 1000));
        break;
    case JITTER:
        options.jitter_seed = whole(name, value, 0, UINT64_MAX);
        break;
    case SIZE:
        options.source.image = size(name, value);
        break;
    case FRAMES:
        options.source.frames = whole(name, value, 1, UINT64_MAX);
        break;
    case SHAKE:
        options.source.shake_seed = whole(name, value, 0, UINT64_MAX);
        break;
    case SHAKE_KEEP:
        options.source.shake_keep = part(name, value, 1);
        break;
    case OUT:
        options.out = value;
        break;
    case CROP:
        options.crop = part(name, value, 0.4);
        break;
    case CSV:
        options.csv = value;
        break;
    case SHAKE_CSV:
        options.shake_csv = value;
        break;
    case SHEET:
        options.sheet = value;
        break;
    case SHEET_FRAME:
        options.sheet_frame = whole(name, value, 0, UINT32_MAX);
        break;
    }
}

} // namespace

std::optional<Options> parse(int argc, char **argv)
{
    Options options;
    int letter, position = 0;

    options.source.image = { 640, 360 };
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
    options.source.clip = argv[optind];
    if (!options.is_pipelined && (options.replicas != 0 || options.jitter_seed))
        throw std::invalid_argument("--replicas and --jitter are of --pipelined; leave --sequential out, or them");
    if (!options.shake_csv.empty() && !options.source.shake_seed)
        throw std::invalid_argument("--shake-csv: there is no shake whose path could be written; add --shake SEED");
    return options;
}
