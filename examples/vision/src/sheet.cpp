#include "sheet.h"

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

namespace
{

constexpr int SHOWN = 3;
constexpr int WIDTH = 400; // of a picture, in pixels
constexpr int GAP = 12;
constexpr int LINE = 30; // of text
const cv::Scalar PAPER(255, 255, 255), INK(40, 40, 40), MARK(0, 220, 255);

void write(cv::Mat &sheet, const std::string &text, cv::Point at, double scale = 0.5)
{
    cv::putText(sheet, text, at, cv::FONT_HERSHEY_SIMPLEX, scale, INK, 1, cv::LINE_AA);
}

cv::Mat mean(const std::vector<cv::Mat> &frames)
{
    cv::Mat sum = cv::Mat::zeros(frames.at(0).size(), CV_32FC3);
    cv::Mat mean;

    for (const cv::Mat &frame : frames)
        cv::add(sum, frame, sum, cv::noArray(), CV_32F);
    sum.convertTo(mean, CV_8U, 1.0 / static_cast<double>(frames.size()));
    return mean;
}

// How far the center of the image moved since the frame before, before and after it was stabilized.
double moved(const Log &log, uint64_t frame, cv::Size image, bool is_stabilized)
{
    const cv::Point2d center(image.width / 2.0, image.height / 2.0);
    const cv::Matx33d motion = to_matx(log.motions.at(frame).matrix);

    if (!is_stabilized)
        return cv::norm(apply(motion, center) - center);
    const cv::Matx33d before = to_matx(log.corrections.at(frame - 1 + LATENCY));
    const cv::Matx33d now = to_matx(log.corrections.at(frame + LATENCY));
    return cv::norm(apply(now * motion * before.inv(), center) - center);
}

// A row: some frames, with lines that stay where they are to see motion by, and the mean of all.
class Row
{
public:
    Row(cv::Mat &sheet, int top, cv::Size picture) : sheet_(sheet), top_(top), picture_(picture) {}

    void add(const cv::Mat &frame, const std::string &caption, bool is_marked)
    {
        cv::Mat target = sheet_(cv::Rect({ left_, top_ }, picture_));
        cv::resize(frame, target, picture_, 0, 0, cv::INTER_AREA);
        if (is_marked) {
            const cv::Point center(picture_.width / 2, picture_.height / 2);
            cv::line(target, { center.x, 0 }, { center.x, picture_.height }, MARK, 1);
            cv::line(target, { 0, center.y }, { picture_.width, center.y }, MARK, 1);
        }
        write(sheet_, caption, { left_, top_ + picture_.height + LINE - 10 });
        left_ += picture_.width + GAP;
    }

private:
    cv::Mat &sheet_;
    int top_;
    int left_ = GAP;
    cv::Size picture_;
};

std::vector<cv::Mat> read(const Clip::Settings &settings, uint64_t first)
{
    const std::atomic<bool> stop(false);
    Clip clip(settings, stop);
    std::vector<cv::Mat> frames;

    for (uint64_t frame = 0; frame < first + SHEET_FRAMES && clip.has_more(); frame++) {
        cv::Mat image(settings.image, CV_8UC3);
        clip.read(image);
        if (frame >= first)
            frames.push_back(image);
    }
    return frames;
}

} // namespace

void write_sheet(const std::string &file, const Clip::Settings &settings, uint64_t first,
                 const std::vector<cv::Mat> &stabilized, const Log &log)
{
    if (stabilized.size() < SHEET_FRAMES)
        throw std::runtime_error(cv::format("%s: frames %ju to %ju are to be shown, but there are %zu; "
                                            "choose earlier ones with --sheet-frame",
                                            file.c_str(), first, first + SHEET_FRAMES - 1,
                                            log.corrections.size() - LATENCY));
    const cv::Size image = settings.image;
    const cv::Size picture(WIDTH, WIDTH * image.height / image.width);
    const int row = picture.height + LINE + GAP;
    cv::Mat sheet(LINE + GAP + 2 * row, (SHOWN + 1) * (WIDTH + GAP) + GAP, CV_8UC3, PAPER);
    const std::string clip = settings.clip.substr(settings.clip.find_last_of('/') + 1);
    const std::string shake = settings.shake_seed ? ", shake " + std::to_string(*settings.shake_seed) : "";

    write(sheet,
          cv::format("%s, %d x %d%s: above as it came, below stabilized", clip.c_str(), image.width, image.height,
                     shake.c_str()),
          { GAP, LINE - 4 }, 0.65);
    for (const bool is_stabilized : { false, true }) {
        const std::vector<cv::Mat> frames = is_stabilized ? stabilized : read(settings, first);
        Row pictures(sheet, LINE + GAP + (is_stabilized ? row : 0), picture);
        for (int shown = 0; shown < SHOWN; shown++) {
            const uint64_t frame = first + static_cast<uint64_t>(shown);
            const std::string caption =
                frame == 0 ? "frame 0"
                           : cv::format("frame %ju: moved by %.1f px", frame, moved(log, frame, image, is_stabilized));
            pictures.add(frames.at(static_cast<size_t>(shown)), caption, true);
        }
        pictures.add(mean(frames), cv::format("mean of frames %ju to %ju", first, first + SHEET_FRAMES - 1), false);
    }
    if (!cv::imwrite(file, sheet))
        throw std::runtime_error(file + ": cannot be written; use a name that ends in .png, in a folder that is there");
}
