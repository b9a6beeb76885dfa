//! The rules of the house that no compiler keeps: dependency direction, purity, readable sizes, documented folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates from the bottom up; a crate may depend on crates of lower layers only.
const LAYERS: &[(u8, &[&str])] = &[
    (0, &["laxity-model"]),
    (1, &["laxity-policy", "laxity-trace", "laxity-analysis", "laxity-gen", "laxity-sys"]),
    (2, &["laxity-plan", "laxity-membership", "laxity-testing"]),
    (3, &["laxity-sim", "laxity-measure", "laxity-graph", "laxity-gpu", "laxity-softgpu"]),
    (4, &["laxity-study", "laxity-device"]),
    (5, &["laxity-runtime", "laxity-vx"]),
    (6, &["laxity-cli", "laxity-capi", "laxity-python", "laxity-examples", "laxity-tests", "laxity-benches"]),
];

const PURE: &[&str] = &[
    "laxity-model",
    "laxity-policy",
    "laxity-trace",
    "laxity-analysis",
    "laxity-gen",
    "laxity-plan",
    "laxity-sim",
    "laxity-study",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn layer(name: &str) -> u8 {
    let found = LAYERS.iter().find(|(_, names)| names.contains(&name));
    found.unwrap_or_else(|| panic!("{name} has no layer: add it to LAYERS in this test and to ARCHITECTURE.md")).0
}

/// Every `Cargo.toml` of the workspace with its crate's name.
fn manifests() -> Vec<(String, PathBuf, toml::Table)> {
    let mut folders: Vec<PathBuf> =
        ["tests", "benches", "python", "capi", "examples/rust"].map(|folder| root().join(folder)).into();
    folders.extend(fs::read_dir(root().join("crates")).expect("crates/").map(|entry| entry.expect("an entry").path()));
    let mut manifests = Vec::new();
    for folder in folders {
        let path = folder.join("Cargo.toml");
        if path.exists() {
            let table: toml::Table = read(&path).parse().expect("a manifest is TOML");
            let name = table["package"]["name"].as_str().expect("a crate has a name").to_owned();
            manifests.push((name, folder, table));
        }
    }
    assert!(manifests.len() >= 8, "the workspace was found");
    manifests
}

/// Files below `folder` with one of `extensions`, build outputs and hidden folders excepted.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if name.starts_with('.') || ["target", "out", "node_modules", "__pycache__"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| *wanted == extension)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn dependencies_point_down_only() {
    for (name, _, manifest) in manifests() {
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table) else { continue };
        for dependency in dependencies.keys().filter(|dependency| dependency.starts_with("laxity-")) {
            assert!(layer(dependency) < layer(&name), "{name} must not depend on {dependency}: it is not below");
        }
    }
}

#[test]
fn analysis_and_simulation_are_independent_witnesses() {
    for (name, _, manifest) in manifests() {
        if ["laxity-analysis", "laxity-policy", "laxity-plan", "laxity-sim"].contains(&name.as_str()) {
            let dependencies = manifest["dependencies"].as_table().expect("a table");
            let other = if name == "laxity-analysis" { "laxity-policy" } else { "laxity-analysis" };
            assert!(!dependencies.contains_key(other), "{name} must share nothing with {other}");
        }
    }
}

#[test]
fn pure_crates_forbid_unsafe_code_and_share_one_clippy_configuration() {
    let common = read(&root().join("crates/laxity-model/clippy.toml"));
    for name in PURE {
        let folder = root().join("crates").join(name);
        let lib = read(&folder.join("src/lib.rs"));
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{name} must forbid unsafe code");
        assert_eq!(read(&folder.join("clippy.toml")), common, "{name}/clippy.toml differs from laxity-model's");
    }
}

/// Clippy keeps this too, where it runs; this test keeps it everywhere, and in code that clippy is told to allow.
#[test]
fn pure_crates_read_no_clock_start_no_thread_and_iterate_no_hash_map() {
    let banned = [
        "std::time",
        "std::thread",
        "thread::spawn",
        "std::env",
        "std::fs",
        "std::net",
        "std::process",
        "HashMap",
        "HashSet",
        "SystemTime",
        "rand::",
    ];
    for name in PURE {
        for path in files(&root().join("crates").join(name).join("src"), &["rs"]) {
            for (number, line) in read(&path).lines().enumerate() {
                let code = line.split("//").next().expect("a first part");
                let found = banned.iter().find(|word| code.contains(**word));
                assert!(
                    found.is_none(),
                    "{}:{}: a pure crate must not use {}",
                    path.display(),
                    number + 1,
                    found.expect("some")
                );
            }
        }
    }
}

#[test]
fn unsafe_code_stays_where_it_argues_its_case() {
    let allowed = [
        "crates/laxity-sys/",
        "crates/laxity-graph/",
        "crates/laxity-gpu/",
        "crates/laxity-softgpu/src/client/view.rs",
        "capi/",
        "python/src/live/message.rs",
    ];
    for path in files(&root(), &["rs"]) {
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if allowed.iter().any(|folder| relative.starts_with(folder)) || relative.ends_with("house_rules.rs") {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            let code = line.split("//").next().expect("a first part");
            let is_unsafe = ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| code.contains(word));
            assert!(!is_unsafe, "{relative}:{}: unsafe code belongs into laxity-sys or capi", number + 1);
        }
    }
}

#[test]
fn files_are_readable_at_one_sitting() {
    for path in files(&root(), &["rs", "py", "c", "h", "cpp"]) {
        // Made from files that are.
        if path.ends_with("capi/include/laxity.h") {
            continue;
        }
        let lines = read(&path).lines().count();
        assert!(lines <= 700, "{}: {lines} lines; which two ideas share the file?", path.display());
    }
}

#[test]
fn the_readme_has_a_sentence_for_every_folder() {
    let readme = read(&root().join("README.md"));
    for entry in fs::read_dir(root()).expect("the root") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let private = name.starts_with('.') || ["target", "out"].contains(&name.as_str());
        if entry.path().is_dir() && !private {
            assert!(readme.contains(&format!("`{name}/`")), "README.md says nothing of {name}/");
        }
    }
    for (name, folder, _) in manifests() {
        if folder.starts_with(root().join("crates")) {
            assert!(readme.contains(&name), "README.md says nothing of {name}");
        }
    }
}

#[test]
fn nothing_names_a_path_of_a_developers_machine() {
    let words =
        [concat!("/wo", "rk/"), concat!("/tmp/", "bash_jobs"), concat!("../", "shared/"), concat!("/ro", "ot/")];
    for path in files(&root(), &["rs", "py", "toml", "md", "sh", "json", "yml", "c", "h", "csv", "svg"]) {
        let text = read(&path);
        for word in words {
            assert!(!text.contains(word), "{} contains {word}", path.display());
        }
    }
}
