//! Deciding crates are pure, and unsafe code stays where it argues its case.

use crate::{files, read, root};

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
        "crates/laxity-sched/",
        "crates/laxity-scx/src/native/",
        "crates/laxity-softgpu/src/client/view.rs",
        "capi/",
        "python/src/live/message.rs",
    ];
    for path in files(&root(), &["rs"]) {
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if allowed.iter().any(|folder| relative.starts_with(folder)) || relative.ends_with("house_rules/purity.rs") {
            continue;
        }
        for (number, line) in read(&path).lines().enumerate() {
            let code = line.split("//").next().expect("a first part");
            let is_unsafe = ["unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| code.contains(word));
            assert!(!is_unsafe, "{relative}:{}: unsafe code belongs into laxity-sys or capi", number + 1);
        }
    }
}
