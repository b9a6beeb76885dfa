#include "log.h"

#include <fstream>
#include <iomanip>
#include <stdexcept>

namespace
{

std::ofstream create(const std::string &file)
{
    std::ofstream out(file);

    if (!out)
        throw std::runtime_error(file + ": cannot be written; check the folder");
    // Numbers are read back as what they were.
    out << std::setprecision(17);
    return out;
}

void close(std::ofstream &out, const std::string &file)
{
    out.close();
    if (!out)
        throw std::runtime_error(file + ": could not be written to the end; is the disk full?");
}

void write_header(std::ofstream &out, const char *matrix)
{
    for (int i = 0; i < 9; i++)
        out << ',' << matrix << i / 3 << i % 3;
}

void write_elements(std::ofstream &out, const double *elements)
{
    for (int i = 0; i < 9; i++)
        out << ',' << elements[i];
}

} // namespace

void Log::reserve(size_t jobs)
{
    for (NodeTimes &times : node_times) {
        times.us.reserve(jobs);
        times.cpu_us.reserve(jobs);
    }
    motions.reserve(jobs);
    corrections.reserve(jobs);
    releases_ns.reserve(jobs);
    completions_ns.reserve(jobs);
}

void write_frames(const std::string &file, const Log &log, const std::vector<std::string> &nodes)
{
    std::ofstream out = create(file);

    out << "frame,hash,pairs,inliers";
    write_header(out, "motion");
    write_header(out, "correction");
    for (const std::string &node : nodes)
        out << ',' << node << "_us";
    out << '\n';
    for (size_t frame = 0; frame < log.hashes.size(); frame++) {
        const Motion &motion = log.motions.at(frame);
        out << frame << ',' << std::hex << std::setw(16) << std::setfill('0') << log.hashes[frame] << std::dec;
        out << ',' << motion.pairs << ',' << motion.inliers;
        write_elements(out, motion.matrix.at);
        write_elements(out, log.corrections.at(frame + LATENCY).at);
        for (const NodeTimes &times : log.node_times)
            out << ',' << times.us.at(frame);
        out << '\n';
    }
    close(out, file);
}

void write_times(const std::string &file, const Log &log)
{
    std::ofstream out = create(file);

    out << "frame,release_us,completion_us\n";
    for (size_t job = 0; job < log.completions_ns.size(); job++)
        out << job << ',' << log.releases_ns.at(job) / 1000 << ',' << log.completions_ns[job] / 1000 << '\n';
    close(out, file);
}

void write_path(const std::string &file, const std::vector<cv::Matx33d> &path)
{
    std::ofstream out = create(file);

    out << "frame";
    write_header(out, "shake");
    out << '\n';
    for (size_t frame = 0; frame < path.size(); frame++) {
        out << frame;
        write_elements(out, path[frame].val);
        out << '\n';
    }
    close(out, file);
}
