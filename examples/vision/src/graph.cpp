#include "graph.h"

#include <cstring>

#include "features.h"
#include "homography.h"
#include "picture.h"

namespace
{

Access input(const char *object)
{
    return { object, false };
}

Access past(const char *object, uint32_t ago)
{
    return { object, false, ago };
}

Access output(const char *object)
{
    return { object, true };
}

// The matrix of this job, and those of the jobs before.
std::vector<Access> matrices()
{
    std::vector<Access> accesses;

    for (uint32_t ago = 0; ago < MATRICES; ago++)
        accesses.push_back(past("matrices", ago));
    return accesses;
}

std::vector<uint8_t> bytes_of(const Matrix &matrix)
{
    std::vector<uint8_t> bytes(sizeof(matrix));

    std::memcpy(bytes.data(), &matrix, sizeof(matrix));
    return bytes;
}

std::vector<Object> objects(size_t pixels, size_t pyramid)
{
    // A delay of depth M holds M + 1 values: what is computed, and what was.
    return {
        { "color", 3 * pixels },
        { "frames", 3 * pixels, LATENCY },
        { "gray", pixels },
        { "pyramids", pyramid, 1 },
        { "points", sizeof(Points), 1 },
        { "tracked", sizeof(Tracked) },
        { "motion", sizeof(Motion) },
        { "matrices", sizeof(Matrix), MATRICES - 1, bytes_of(IDENTITY) },
        { "correction", sizeof(Matrix) },
        { "stabilized", 3 * pixels },
    };
}

} // namespace

// Figure 5.8 and Table 5.1 of the paper; names and lengths of delays are the demo's.
Graph stabilizer(cv::Size image, double crop, Source &source, Sink &sink, Log &log)
{
    const PyramidLayout layout(image);
    const auto color = [image](auto *bytes) { return view(bytes, image, CV_8UC3); };
    const auto gray = [image](auto *bytes) { return view(bytes, image, CV_8UC1); };
    Graph graph{ objects(static_cast<size_t>(image.area()), layout.bytes()), {} };
    const auto node = [&](const char *name, Place place, std::vector<Access> accesses,
                          std::function<void(const Arguments &)> work) {
        graph.nodes.push_back({ name, place, std::move(accesses), std::move(work) });
    };

    node("read_frame", Place::Cpu, { output("color") },
         [=, &source](const Arguments &to) { source.read(color(to.bytes_out(0))); });
    graph.nodes.back().has_more = [&source] { return source.has_more(); };

    node("duplicate_color_image", Place::Gpu, { input("color"), output("frames") },
         [=](const Arguments &to) { duplicate(color(to.bytes_in(0)), color(to.bytes_out(1))); });

    node("convert_to_grayscale", Place::Gpu, { input("color"), output("gray") },
         [=](const Arguments &to) { convert_to_grayscale(color(to.bytes_in(0)), gray(to.bytes_out(1))); });

    node("compute_image_pyramid", Place::Gpu, { input("gray"), output("pyramids") },
         [=](const Arguments &to) { compute_pyramid(gray(to.bytes_in(0)), layout, to.bytes_out(1)); });

    // The points are those of the tracker, further down: the back-edge of the graph.
    node("compute_optical_flow", Place::Gpu,
         { past("pyramids", 1), input("pyramids"), past("points", 1), output("tracked") }, [=](const Arguments &to) {
             compute_optical_flow(layout, to.bytes_in(0), to.bytes_in(1), to.in<Points>(2), to.out<Tracked>(3));
         });

    node("harris_feature_tracker", Place::Gpu, { input("gray"), input("tracked"), output("points") },
         [=](const Arguments &to) { track_features(gray(to.bytes_in(0)), to.in<Tracked>(1), to.out<Points>(2)); });

    node("compute_homography", Place::Gpu, { past("points", 1), input("tracked"), output("motion") },
         [](const Arguments &to) { compute_homography(to.in<Points>(0), to.in<Tracked>(1), to.out<Motion>(2)); });

    node("homography_filter", Place::Cpu, { input("motion"), output("matrices") }, [=, &log](const Arguments &to) {
        log.motions.push_back(to.in<Motion>(0));
        filter_homography(to.in<Motion>(0), image, to.out<Matrix>(1));
    });

    std::vector<Access> smooths = matrices();
    smooths.push_back(output("correction"));
    node("smooth_homography", Place::Cpu, smooths, [&log](const Arguments &to) {
        std::array<const Matrix *, MATRICES> matrices;
        for (uint32_t ago = 0; ago < MATRICES; ago++)
            matrices[ago] = &to.in<Matrix>(ago);
        smooth_homography(matrices, to.out<Matrix>(MATRICES));
        log.corrections.push_back(to.out<Matrix>(MATRICES));
    });

    node("warp_perspective", Place::Gpu, { past("frames", LATENCY), input("correction"), output("stabilized") },
         [=](const Arguments &to) {
             warp_perspective(color(to.bytes_in(0)), to.in<Matrix>(1), crop, color(to.bytes_out(2)));
         });

    node("display_stabilized_image", Place::Cpu, { input("stabilized") },
         [=, &sink](const Arguments &to) { sink.show(color(to.bytes_in(0))); });
    log.node_times.resize(graph.nodes.size());
    return graph;
}
