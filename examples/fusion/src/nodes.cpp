// The nodes of fusion.toml: functions that `laxity run` calls for each job.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <laxity/code.hpp>
#include <vector>

#include "detector.h"
#include "messages.h"
#include "recording.h"

LAXITY_CODE_LIBRARY

namespace
{

// A scan comes with every third frame.
constexpr uint64_t FRAMES_A_SCAN = 3;
// Metres a second, metres a second squared, and metres that stay between the car and an obstacle.
constexpr double SPEED_MAX = 14;
constexpr double BRAKING = 4;
constexpr double DISTANCE_MIN = 3;
// The way of the car is so many degrees to both sides.
constexpr double CORRIDOR = 10;

uint64_t now_ns()
{
    timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// What the planner tells when it ends.
struct Plans {
    uint64_t count = 0, with_obstacles = 0, age_max_ns = 0;
    double slowest = SPEED_MAX, nearest = INFINITY;
};

// The middle one of the echoes in the columns of the box; 0 without any.
float range_of(const Box &box, const Beams &beams)
{
    std::vector<float> echoes;

    std::copy_if(beams.begin() + box.left, beams.begin() + box.right, std::back_inserter(echoes),
                 [](float range) { return range > 0; });
    if (echoes.empty())
        return 0;
    std::nth_element(echoes.begin(), echoes.begin() + static_cast<long>(echoes.size() / 2), echoes.end());
    return echoes[echoes.size() / 2];
}

// An object of the library's for a task, made in `init`.
template <typename Make> int begin(const char *task, void **state, Make make)
{
    try {
        *state = make();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: %s\n", task, error.what());
        return 1;
    }
}

} // namespace

LAXITY_CODE int open_recording(const char *task, void **state)
{
    return begin(task, state, [] { return new Recording(read_recording(RECORDING)); });
}

LAXITY_CODE void close_recording(void *state)
{
    delete static_cast<Recording *>(state);
}

LAXITY_CODE int open_detector(const char *task, void **state)
{
    return begin(task, state, [] { return new Detector; });
}

LAXITY_CODE void close_detector(void *state)
{
    delete static_cast<Detector *>(state);
}

LAXITY_CODE int open_planner(const char *task, void **state)
{
    return begin(task, state, [] { return new Plans; });
}

LAXITY_CODE void close_planner(void *state)
{
    const Plans &plans = *static_cast<Plans *>(state);

    std::fprintf(stderr, "planner: %llu plans, %llu with obstacles, nearest %.1f m, slowest %.1f m/s, oldest frame %.1f ms\n",
                 static_cast<unsigned long long>(plans.count), static_cast<unsigned long long>(plans.with_obstacles),
                 plans.nearest, plans.slowest, static_cast<double>(plans.age_max_ns) / 1e6);
    delete &plans;
}

LAXITY_CODE int camera(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) {
        const Recording &recording = job.state<Recording>();

        if (job.is_warm_up())
            return;
        Frame &frame = job.output<Frame>("detect")[0];
        frame.number = job.index();
        frame.taken_ns = job.call().release_ns;
        std::memcpy(frame.pixels, recording.frame(job.index()), sizeof(frame.pixels));
        job.resize<Frame>("detect", 1);
    });
}

LAXITY_CODE int detect(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) {
        Detector &detector = job.state<Detector>();

        // OpenCV allocates, and starts what it needs, with the first picture.
        if (job.is_warm_up()) {
            Detector().boxes(cv::Mat(HEIGHT, WIDTH, CV_8U, cv::Scalar(0)));
            return;
        }
        const Frame &frame = job.input<Frame>("camera")[0];
        const cv::Mat picture(HEIGHT, WIDTH, CV_8U, const_cast<uint8_t *>(&frame.pixels[0][0]));
        Boxes &boxes = job.output<Boxes>("fusion")[0];
        boxes.frame = frame.number;
        boxes.taken_ns = frame.taken_ns;
        boxes.count = 0;
        for (const cv::Rect &found : detector.boxes(picture))
            if (boxes.count < Boxes::MOST)
                boxes.box[boxes.count++] = {static_cast<uint32_t>(found.x), static_cast<uint32_t>(found.x + found.width)};
        job.resize<Boxes>("fusion", 1);
    });
}

LAXITY_CODE int lidar(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) {
        const Recording &recording = job.state<Recording>();

        if (job.is_warm_up())
            return;
        job.output<Scan>("fusion")[0] = {job.index(), job.call().release_ns, recording.scan(job.index() * FRAMES_A_SCAN)};
        job.resize<Scan>("fusion", 1);
    });
}

LAXITY_CODE int fuse(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) {
        Obstacles &obstacles = job.output<Obstacles>("planner")[0];

        obstacles = {};
        job.resize<Obstacles>("planner", 1);
        // Of each sensor the newest, or none before its first.
        if (job.count("detect") == 0 || job.count("lidar") == 0)
            return;
        const Boxes &boxes = job.input<Boxes>("detect")[0];
        const Scan &scan = job.input<Scan>("lidar")[0];
        obstacles.frame = boxes.frame;
        obstacles.frame_taken_ns = boxes.taken_ns;
        obstacles.scan_taken_ns = scan.taken_ns;
        for (uint64_t number = 0; number < boxes.count; number++) {
            const Box &box = boxes.box[number];
            const float range = range_of(box, scan.range);
            const double middle = (box.left + box.right) / 2.0 / WIDTH - 0.5;

            if (range > 0)
                obstacles.obstacle[obstacles.count++] = {static_cast<float>(middle * VIEW), range};
        }
    });
}

LAXITY_CODE int plan(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) {
        Plans &plans = job.state<Plans>();
        const Obstacles &obstacles = job.input<Obstacles>("fusion")[0];
        double nearest = INFINITY;

        for (uint64_t number = 0; number < obstacles.count; number++)
            if (std::fabs(obstacles.obstacle[number].bearing) < CORRIDOR)
                nearest = std::min<double>(nearest, obstacles.obstacle[number].range);
        // As fast as the car can stop before it.
        const double speed = std::min(SPEED_MAX, std::sqrt(2 * BRAKING * std::max(nearest - DISTANCE_MIN, 0.0)));

        plans.count++;
        plans.with_obstacles += obstacles.count > 0;
        plans.nearest = std::min(plans.nearest, nearest);
        plans.slowest = std::min(plans.slowest, speed);
        if (obstacles.frame_taken_ns > 0)
            plans.age_max_ns = std::max(plans.age_max_ns, now_ns() - obstacles.frame_taken_ns);
    });
}
