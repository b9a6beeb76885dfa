// Workload files for C++17, run in the program's own process. Headers only, on laxity.h.
//
//     laxity::Workload car("car.toml");
//     car.bind("vision/detect", [&](laxity::Job &job) { detector.run(job.input<uint8_t>("camera")); });
//     car.run(std::chrono::seconds(10));
//     for (const laxity::TaskResult &task : car.results())
//         std::cout << task.name << ": " << task.missed << " of " << task.released << " late\n";

#pragma once

#include <chrono>
#include <functional>
#include <laxity/code.hpp>
#include <laxity/laxity.hpp>
#include <memory>
#include <mutex>
#include <vector>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace laxity
{

// What the jobs of one task did.
struct TaskResult : laxity_task_result {
    // The name of the task, or GRAPH/NODE.
    std::string name;
};

// A workload file. Calls that fail throw laxity::Error.
class Workload
{
public:
    // Reads and validates the file.
    explicit Workload(const std::string &path) { check(laxity_workload_load(path.c_str(), handle_.out())); }

    // Has the jobs of the task, or of the node GRAPH/NODE, call `body`; if `warm`, once before time 0, too.
    void bind(const std::string &name, std::function<void(Job &)> body, bool warm = false)
    {
        bodies_.push_back(std::make_unique<Body>(name, std::move(body)));
        check(laxity_workload_bind(handle_.get(), name.c_str(), Body::call, bodies_.back().get(), warm));
    }

    // Runs it, and returns when all its jobs are done. The exception of a body ends the run: its text is in the error.
    void run(std::chrono::nanoseconds duration, laxity_live_scheduler scheduler = LAXITY_SCHEDULER_STRONGEST,
             const std::string &trace = {}, uint64_t seed = 0)
    {
        laxity_run_options options = {};

        options.duration_ns = span_ns(duration, "the duration");
        options.seed = seed;
        options.scheduler = scheduler;
        options.trace = trace.empty() ? nullptr : trace.c_str();
        for (const auto &body : bodies_)
            body->take_what();
        const laxity_result result = laxity_workload_run(handle_.get(), &options);

        if (result == LAXITY_ERROR_CODE)
            throw with_what(last_error());
        check(result);
    }

    // Ends the run, from another thread; the next one as soon as it has begun, if there is none.
    void stop() { check(laxity_workload_stop(handle_.get())); }

    // What the tasks and then the nodes did in the last run, also if that failed.
    std::vector<TaskResult> results() const
    {
        uint32_t count = 0;

        check(laxity_workload_tasks(handle_.get(), &count));
        std::vector<TaskResult> results(count);
        for (uint32_t number = 0; number < count; number++) {
            const char *name = nullptr;

            check(laxity_workload_result(handle_.get(), number, &results[number]));
            check(laxity_workload_name(handle_.get(), number, &name));
            results[number].name = name;
        }
        return results;
    }

private:
    // A function that is bound, and the text of its exception.
    class Body
    {
    public:
        Body(const std::string &task, std::function<void(Job &)> function) : task_(task), function_(std::move(function)) {}

        // No exception leaves it; pthread_exit does.
        static int32_t call(laxity_code_call *call)
        {
            Body &body = *static_cast<Body *>(call->state);

            try {
                Job job(call);

                body.function_(job);
                return 0;
            } catch (const std::exception &error) {
                body.note(error.what());
#ifdef __GLIBCXX__
            } catch (abi::__forced_unwind &) {
                // By pthread_exit, which must go on.
                throw;
#endif
            } catch (...) {
                body.note("it is no std::exception");
            }
            return 1;
        }

        const std::string &task() const { return task_; }

        std::string take_what()
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            return std::exchange(what_, {});
        }

    private:
        void note(const char *what)
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            what_ = what;
        }

        std::string task_;
        std::function<void(Job &)> function_;
        // The thread of the task may outlast the run, if it is stuck.
        std::mutex mutex_;
        std::string what_;
    };

    // The error with what the body of its task threw, if it did.
    Error with_what(const Error &error) const
    {
        const std::string message = error.what();

        for (const auto &body : bodies_) {
            const std::string what = body->take_what();

            if (!what.empty() && message.find("task \"" + body->task() + "\"") != std::string::npos)
                return Error(error.result(), message + ": " + what, error.node());
        }
        return error;
    }

    Handle<laxity_workload, laxity_workload_release> handle_;
    std::vector<std::unique_ptr<Body>> bodies_;
};

} // namespace laxity
