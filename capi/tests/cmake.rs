//! A project of CMake's that uses the installed package: a program that runs a workload file, and a library for `laxity run`.

mod support;

use std::fs;
use std::process::Command;

use laxity_testing::{Directory, skip};
use support::{PREFIX, run, stdout};

const LISTS: &str = "cmake_minimum_required(VERSION 3.16)
project(car CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(laxity MINOR REQUIRED)
add_executable(car car.cpp)
target_link_libraries(car laxity::laxity)
add_library(fusion SHARED fusion.cpp)
target_link_libraries(fusion laxity::code)
";

/// The version whose programs run with this library.
const MINOR: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// Each node checks what it is given, and the program that both did all their jobs; then a function fails.
const PROGRAM: &str = r#"
#include <cstdio>
#include <laxity/workload.hpp>

int main(int, char **words)
{
    laxity::Workload car(words[1]);
    unsigned long sent = 0, got = 0, warm = 0;
    car.bind("NAME/camera", [&](laxity::Job &job) {
        if (job.is_warm_up()) {
            warm++;
            return;
        }
        job.output<uint64_t>("fuse")[0] = job.index() * 3;
        job.resize<uint64_t>("fuse", 1);
        sent++;
    }, true);
    car.bind("NAME/fuse", [&](laxity::Job &job) {
        laxity::Values<const uint64_t> message = job.input<uint64_t>("camera");
        if (message.size() != 1 || message[0] != job.index() * 3)
            throw std::runtime_error("another message");
        got++;
    });
    car.run(std::chrono::milliseconds(100), LAXITY_SCHEDULER_OTHER, words[2]);
    for (const laxity::TaskResult &task : car.results())
        std::printf("%s %llu\n", task.name.c_str(), (unsigned long long)task.completed);
    std::printf("%lu %lu %lu\n", warm, sent, got);
    car.bind("NAME/fuse", [](laxity::Job &job) {
        if (job.index() == 2)
            throw std::runtime_error("no");
    });
    try {
        car.run(std::chrono::milliseconds(100), LAXITY_SCHEDULER_OTHER);
    } catch (const laxity::Error &error) {
        std::printf("%d %s\n", error.result(), error.what());
    }
    try {
        car.bind("fuse", [](laxity::Job &) {});
    } catch (const laxity::Error &error) {
        std::printf("%d %s\n", error.result(), error.what());
    }
}
"#;

const LIBRARY: &str = "#include <laxity/code.hpp>
LAXITY_CODE_LIBRARY
LAXITY_CODE int fuse(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) { job.input<float>(\"camera\"); });
}
";

const WORKLOAD: &str = r#"laxity = 1
name = "car"
scheduler = "P-RM"
platform.cpus = 1
[[graph]]
name = "NAME"
edge = [{ from = "camera", to = "fuse", message = "64 B" }]
node = [{ name = "camera", period = "20 ms", wcet = "1 ms" }, { name = "fuse", wcet = "1 ms" }]
"#;

#[test]
fn a_cmake_project_finds_the_package_and_runs_a_workload_file_with_functions_of_its_own() {
    if Command::new("cmake").arg("--version").output().is_err() {
        return skip("no cmake");
    }
    let place = Directory::new("cmake");
    let name = format!("cmake-{}", std::process::id());
    let write = |file: &str, text: &str| {
        fs::write(place.path().join(file), text.replace("NAME", &name).replace("MINOR", MINOR)).expect("a folder")
    };
    for (file, text) in
        [("CMakeLists.txt", LISTS), ("car.cpp", PROGRAM), ("fusion.cpp", LIBRARY), ("car.toml", WORKLOAD)]
    {
        write(file, text);
    }
    let build = place.path().join("build");
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", PREFIX.display());
    run(Command::new("cmake").arg("-S").arg(place.path()).arg("-B").arg(&build).arg(&prefix));
    // Programs for an earlier minor version, or a later patch, are not for this library.
    let later = format!("{MINOR}.999");
    for (version, is_found) in
        [("0.0.5", false), (MINOR, true), (env!("CARGO_PKG_VERSION"), true), (later.as_str(), false), ("999.0", false)]
    {
        write("CMakeLists.txt", &LISTS.replace("MINOR", version));
        let other = place.path().join(format!("for-{version}"));
        let mut ask = Command::new("cmake");
        let output = ask.arg("-S").arg(place.path()).arg("-B").arg(other).arg(&prefix).output().expect("it starts");
        assert_eq!(output.status.success(), is_found, "{version}: {}", String::from_utf8_lossy(&output.stderr));
    }
    write("CMakeLists.txt", LISTS);
    run(Command::new("cmake").arg("--build").arg(&build));
    let trace = place.path().join("car.lxt");
    let mut car = Command::new(build.join("car"));
    let said = stdout(&run(car.arg(place.path().join("car.toml")).arg(&trace)));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], [format!("{name}/camera 5"), format!("{name}/fuse 5"), "1 5 5".to_owned()], "{said}");
    assert!(lines[3].starts_with("87 ") && lines[3].contains("job 2: its code failed"), "{said}");
    assert!(lines[3].ends_with("answered 1: no"), "{said}");
    assert!(lines[4].starts_with("86 there is no task or node \"fuse\""), "{said}");
    assert!(fs::metadata(&trace).expect("it was written").len() > 0);
    assert!(build.join("libfusion.so").exists());
}
