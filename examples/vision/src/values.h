// What options say, as text, made into values. All of these throw std::invalid_argument, which says what is wrong.

#pragma once

#include <opencv2/core.hpp>
#include <string>

uint64_t to_whole(const std::string &option, const std::string &text, uint64_t least, uint64_t most);

// A number from `least` to `most`.
double to_number(const std::string &option, const std::string &text, double least, double most);

// A span of time with its unit, as "20ms"; positive, in nanoseconds.
uint64_t to_ns(const std::string &option, const std::string &text);

// A width and a height, as "640x360".
cv::Size to_size(const std::string &option, const std::string &text);

// The position of `text` in a list of words.
size_t to_choice(const std::string &option, const std::string &text, const std::vector<std::string> &words);
