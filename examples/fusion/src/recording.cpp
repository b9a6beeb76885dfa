#include "recording.h"

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace
{

struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File open(const std::string &path, const char *mode)
{
    File file(std::fopen(path.c_str(), mode));

    if (!file)
        throw std::runtime_error("cannot open " + path + "; `make fusion` makes the recording");
    return file;
}

} // namespace

Recording read_recording(const std::string &path)
{
    File file = open(path, "rb");
    Recording recording;
    uint8_t frame[WIDTH * HEIGHT];
    Beams beams;

    while (std::fread(frame, sizeof(frame), 1, file.get()) == 1 && std::fread(&beams, sizeof(beams), 1, file.get()) == 1) {
        recording.pixels.insert(recording.pixels.end(), frame, frame + sizeof(frame));
        recording.scans.push_back(beams);
    }
    if (recording.frames() == 0)
        throw std::runtime_error(path + " has no frames; remove it, and `make fusion` makes it again");
    return recording;
}

void write_recording(const std::string &path, const Recording &recording)
{
    const std::string unfinished = path + ".part";
    File file = open(unfinished, "wb");

    for (size_t number = 0; number < recording.frames(); number++) {
        std::fwrite(recording.frame(number), WIDTH * HEIGHT, 1, file.get());
        std::fwrite(&recording.scan(number), sizeof(Beams), 1, file.get());
    }
    if (std::fflush(file.get()) != 0 || std::ferror(file.get()) || std::rename(unfinished.c_str(), path.c_str()) != 0)
        throw std::runtime_error("cannot write " + path);
}
