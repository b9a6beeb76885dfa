// A contact sheet: frames of a clip above what became of them.

#pragma once

#include <string>

#include "clip.h"
#include "log.h"

// So many frames are needed: a few of them are shown, and the mean of all.
constexpr uint64_t SHEET_FRAMES = 12;

// Writes the frames from `first` on to an image. `stabilized` are the same ones as they left the graph.
void write_sheet(const std::string &file, const Clip::Settings &settings, uint64_t first,
                 const std::vector<cv::Mat> &stabilized, const Log &log);
