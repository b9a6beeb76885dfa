#include "values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace
{

constexpr int SIDE_MIN = 64, SIDE_MAX = 4096; // pixels
constexpr double SPAN_MAX_S = 1e6;            // eleven days

[[noreturn]] void refuse(const std::string &option, const std::string &text, const std::string &want)
{
    throw std::invalid_argument("--" + option + " " + text + ": is not " + want);
}

} // namespace

uint64_t to_whole(const std::string &option, const std::string &text, uint64_t least, uint64_t most)
{
    const auto want = [&] { return "a whole number from " + std::to_string(least) + " to " + std::to_string(most); };

    if (text.empty() || text.size() > 20 || text.find_first_not_of("0123456789") != std::string::npos)
        refuse(option, text, want());
    try {
        const uint64_t number = std::stoull(text);
        if (number >= least && number <= most)
            return number;
    } catch (const std::out_of_range &) {
    }
    refuse(option, text, want());
}

double to_number(const std::string &option, const std::string &text, double least, double most)
{
    char *end = nullptr;
    const double number = std::strtod(text.c_str(), &end);

    if (text.empty() || *end != '\0' || !(number >= least && number <= most))
        refuse(option, text, cv::format("a number from %g to %g", least, most));
    return number;
}

uint64_t to_ns(const std::string &option, const std::string &text)
{
    struct Unit {
        const char *name;
        double ns;
    };
    constexpr Unit UNITS[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
    char *end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    const std::string name = std::string(end).substr(*end == ' ' ? 1 : 0);

    for (const Unit &unit : UNITS) {
        const double ns = std::round(number * unit.ns);
        if (end != text.c_str() && name == unit.name && ns >= 1 && ns <= SPAN_MAX_S * 1e9)
            return static_cast<uint64_t>(ns);
    }
    refuse(option, text, "a span of time with its unit (ns, us, ms, s), as 20ms");
}

cv::Size to_size(const std::string &option, const std::string &text)
{
    const size_t cross = text.find('x');

    if (cross == std::string::npos)
        refuse(option, text, "a width and a height, as 640x360");
    return { static_cast<int>(to_whole(option, text.substr(0, cross), SIDE_MIN, SIDE_MAX)),
             static_cast<int>(to_whole(option, text.substr(cross + 1), SIDE_MIN, SIDE_MAX)) };
}

size_t to_choice(const std::string &option, const std::string &text, const std::vector<std::string> &words)
{
    const auto found = std::find(words.begin(), words.end(), text);
    std::string want = "one of";

    for (const std::string &word : words)
        want += " " + word;
    if (found == words.end())
        refuse(option, text, want);
    return static_cast<size_t>(found - words.begin());
}
