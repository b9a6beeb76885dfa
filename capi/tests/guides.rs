//! What readers copy compiles, by each compiler that is there, without a warning: all examples in C and C++, and all blocks of the
//! guides, each within a program of `guides/` that has what the block leaves out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What compilers are asked to say.
const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"];

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("capi/ has a parent")
}

/// Files of `folder` in C and C++, in order.
fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = paths.filter(|path| is_cpp(path) || path.extension() == Some(OsStr::new("c"))).collect();
    found.sort();
    found
}

fn is_cpp(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("cpp"))
}

/// Has each compiler for `path` compile `text`, from standard input, as that file.
fn compile(path: &Path, text: &str) {
    let (compilers, language, standard) = match is_cpp(path) {
        true => (["g++", "clang++"], "c++", "-std=c++17"),
        false => (["gcc", "clang"], "c", "-std=c11"),
    };
    let include = root().join("capi/include");
    for compiler in compilers {
        let mut command = Command::new(compiler);
        command.args(WARNINGS).args([standard, "-x", language, "-I"]).arg(&include).arg("-");
        let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            laxity_testing::skip(format_args!("there is no {compiler}"));
            continue;
        };
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("the compiler reads");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} by {compiler} {standard}:\n{said}", path.display());
    }
}

/// The blocks in C and C++ of the guides, by the name of the guide and their number in it, from 1.
fn blocks() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("docs/guides")).expect("the guides") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a guide");
        let name = path.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
        let (mut number, mut block) = (0, None::<String>);
        for line in text.lines() {
            match (line, &mut block) {
                ("```c" | "```cpp", None) => block = Some(String::new()),
                ("```", Some(_)) => {
                    number += 1;
                    found.push((format!("{name} {number}"), block.take().expect("it was begun")));
                }
                (line, Some(block)) => *block += &format!("{line}\n"),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn every_example_compiles_without_a_warning_where_compilers_keep_to_the_standard() {
    let all = [sources("examples/c"), sources("examples/cpp")].concat();
    assert!(all.len() >= 9, "{all:?}");
    for path in all {
        compile(&path, &fs::read_to_string(&path).expect("an example"));
    }
}

/// In a program `// GUIDE NUMBER` stands for a block, whose `#include` lines precede the program.
#[test]
fn every_block_of_the_guides_compiles_without_a_warning() {
    let blocks = blocks();
    let mut left: BTreeSet<&str> = blocks.iter().map(|(name, _)| name.as_str()).collect();
    assert!(left.len() >= 9, "{left:?}");
    for path in sources("capi/tests/guides") {
        let (mut includes, mut program) = (String::new(), String::new());
        for line in fs::read_to_string(&path).expect("a program").lines() {
            let named = line.strip_prefix("// ").and_then(|name| blocks.iter().find(|(known, _)| known == name));
            let Some((name, block)) = named else {
                program += &format!("{line}\n");
                continue;
            };
            left.remove(name.as_str());
            for line in block.lines() {
                let place = if line.starts_with("#include") { &mut includes } else { &mut program };
                *place += &format!("{line}\n");
            }
        }
        compile(&path, &format!("{includes}{program}"));
    }
    assert!(left.is_empty(), "no program of capi/tests/guides has these blocks: {left:?}");
}
