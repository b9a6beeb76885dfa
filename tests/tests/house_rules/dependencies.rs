//! Which crate may use which: down the layers only, and no analysis in a simulation.

use crate::manifests;

/// Crates from the bottom up; a crate may depend on crates of lower layers only.
const LAYERS: &[(u8, &[&str])] = &[
    (0, &["laxity-model"]),
    (1, &["laxity-policy", "laxity-trace", "laxity-analysis", "laxity-gen", "laxity-sys"]),
    (2, &["laxity-plan", "laxity-membership", "laxity-testing"]),
    (
        3,
        &["laxity-sim", "laxity-measure", "laxity-graph", "laxity-gpu", "laxity-sched", "laxity-scx", "laxity-softgpu"],
    ),
    (4, &["laxity-study", "laxity-tune", "laxity-device", "laxity-interpose", "laxity-bandwidth", "laxity-softcuda"]),
    (5, &["laxity-runtime", "laxity-softcudart"]),
    (6, &["laxity-vx"]),
    (
        7,
        &[
            "laxity-cli",
            "laxity-capi",
            "laxity-cuda",
            "laxity-opencl",
            "laxity-python",
            "laxity-examples",
            "laxity-tests",
            "laxity-benches",
        ],
    ),
];

/// Dependencies of tests that do not point down, and why each is there.
const UPWARD_IN_TESTS: &[(&str, &str, &str)] = &[
    ("laxity-policy", "laxity-analysis", "its tests compare schedules with bounds, as independent witnesses"),
    ("laxity-sys", "laxity-testing", "its tests note what they skip"),
    ("laxity-membership", "laxity-testing", "its tests start processes and kill them"),
    ("laxity-graph", "laxity-sim", "its tests compare what live graphs do with the simulator"),
];

/// When a dependency is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// With the crate, or before it by its build script.
    Always,
    /// With its tests, examples and benchmarks.
    Tests,
}

/// The crates of the workspace that a manifest names, on any target.
fn dependencies(manifest: &toml::Table) -> Vec<(Use, String)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let sections = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    let kinds = [(Use::Always, "dependencies"), (Use::Always, "build-dependencies"), (Use::Tests, "dev-dependencies")];
    let mut found = Vec::new();
    for section in sections {
        for (built, name) in kinds {
            let crates = section.get(name).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            found.extend(crates.filter(|name| name.starts_with("laxity-")).map(|name| (built, name.clone())));
        }
    }
    found
}

fn layer(name: &str) -> u8 {
    let found = LAYERS.iter().find(|(_, names)| names.contains(&name));
    found.unwrap_or_else(|| panic!("{name} has no layer: add it to LAYERS in this test and to ARCHITECTURE.md")).0
}

#[test]
fn dependencies_point_down_only() {
    for (name, _, manifest) in manifests() {
        for (built, dependency) in dependencies(&manifest) {
            let is_listed = UPWARD_IN_TESTS.iter().any(|(from, to, _)| *from == name && *to == dependency);
            let is_allowed = layer(&dependency) < layer(&name) || (built == Use::Tests && is_listed);
            assert!(is_allowed, "{name} must not depend on {dependency} ({built:?}): it is not below");
        }
    }
}

#[test]
fn every_exception_for_tests_is_still_needed() {
    for (from, to, _) in UPWARD_IN_TESTS {
        let (_, _, manifest) = manifests().into_iter().find(|(name, ..)| name == from).expect("the crate exists");
        assert!(dependencies(&manifest).contains(&(Use::Tests, (*to).to_owned())), "{from} does not use {to} any more");
    }
}

#[test]
fn analysis_and_simulation_are_independent_witnesses() {
    for (name, _, manifest) in manifests() {
        if ["laxity-analysis", "laxity-policy", "laxity-sim", "laxity-plan"].contains(&name.as_str()) {
            let other = if name == "laxity-analysis" { "laxity-policy" } else { "laxity-analysis" };
            let shares = dependencies(&manifest).contains(&(Use::Always, other.to_owned()));
            assert!(!shares, "{name} must share nothing with {other}");
        }
    }
}

#[test]
fn dependencies_of_one_target_of_build_scripts_and_of_tests_are_seen() {
    let manifest = r#"
        [dependencies]
        laxity-model.workspace = true
        serde = "1"
        [build-dependencies]
        laxity-gen = { workspace = true }
        [target.'cfg(target_os = "linux")'.dependencies]
        laxity-sys.workspace = true
        [target.'cfg(unix)'.dev-dependencies]
        laxity-testing.workspace = true
    "#;
    let seen = dependencies(&manifest.parse().expect("a manifest"));
    for expected in [
        (Use::Always, "laxity-model"),
        (Use::Always, "laxity-gen"),
        (Use::Always, "laxity-sys"),
        (Use::Tests, "laxity-testing"),
    ] {
        assert!(seen.iter().any(|(built, name)| (*built, name.as_str()) == expected), "{expected:?} of {seen:?}");
    }
    assert_eq!(seen.len(), 4);
}
