//! Chains and latest-value edges in every verb: one file, the same names, and measured times within the bounds.

use serde_json::Value;

use crate::support::{example, folder, run};

fn json(words: &[&str]) -> Value {
    let (code, out, err) = run(words);
    assert_eq!(code, 0, "{words:?}: {err}");
    serde_json::from_str(&out).expect("JSON")
}

/// Simulated times are within the bounds; live ones are within those times if the machine is calm, which no test can ask for.
#[test]
fn the_fusion_example_is_proven_simulated_and_run_with_the_same_chains() {
    let folder = folder();
    let path = example("fusion.toml");
    let (file, trace) = (path.to_str().expect("UTF-8"), folder.path().join("live.lxt"));
    let trace = trace.to_str().expect("UTF-8");
    let proven = json(&["check", file, "--json", "--no-scaling"]);
    let simulated = json(&["simulate", file, "--json", "--for", "2 s", "--fail-on-miss"]);
    let ran = json(&["run", file, "--json", "--for", "600 ms", "--scheduler", "other", "--trace", trace]);
    for (index, bound) in proven["chains"].as_array().expect("a list").iter().enumerate() {
        let (simulated, ran) = (&simulated["chains"][index], &ran["chains"][index]);
        for key in ["name", "path", "data_age_max_ns", "reaction_time_max_ns"] {
            assert_eq!((&simulated[key], &ran[key]), (&bound[key], &bound[key]), "{key}");
        }
        for (measured, bound) in [("data_age", "data_age_ns"), ("reaction_time", "reaction_time_ns")] {
            let proven = proven["chains"][index][bound].as_u64().expect("a bound");
            let longest = simulated[measured]["max_ns"].as_u64().expect("a number");
            assert!(longest <= proven && longest > proven / 4, "{measured}: {longest} of {proven}");
        }
        assert!(ran["outputs"].as_u64() > Some(5), "{ran}");
    }
    // What each job read is in the trace, and was the newest.
    let (code, out, err) = run(["trace", trace, "check", "--ignore-deadlines"]);
    assert_eq!(code, 0, "{out}{err}");
    let (_, out, _) = run(["trace", trace, "export", "--table", "events", "--format", "json", "-o", "-"]);
    let events: Vec<Value> = serde_json::from_str(&out).expect("JSON");
    let reads = events.iter().filter(|event| event["event"] == "read").count();
    assert!(reads >= 24, "twice by each of 12 jobs of fusion: {reads}");
}

/// A deadline that no schedule keeps: not proven, and missed by all outputs, which is a failure where misses are.
#[test]
fn missed_deadlines_of_chains_fail_as_those_of_jobs_do() {
    let folder = folder();
    let path = folder.path().join("tight.toml");
    let text = std::fs::read_to_string(example("fusion.toml")).expect("an example");
    std::fs::write(&path, text.replace("data_age_max = \"150 ms\"", "data_age_max = \"10 ms\"")).expect("a file");
    let file = path.to_str().expect("UTF-8");
    let (code, out, _) = run(["check", file]);
    assert_eq!(code, 1);
    assert!(
        out.contains("hard: not proven\n") && out.contains("chain \"see and steer\": the bound on its data age"),
        "{out}"
    );
    assert_eq!(run(["check", file, "--soft", "--quiet"]).0, 0, "tardiness is bounded all the same");
    let words = ["simulate", file, "--for", "1 s", "--fail-on-miss"];
    let (code, out, err) = run(words);
    assert_eq!(code, 1);
    assert!(err.contains("0 of 112 jobs and 19 outputs of chains missed their deadlines"), "{err}");
    assert!(out.contains("19 of 19 outputs of chain \"see and steer\" missed its deadline"), "{out}");
    let (_, out, _) = run(["simulate", file, "--for", "1 s", "--policy", "P-RM,G-EDF"]);
    assert!(out.lines().filter(|line| line.starts_with("see and steer")).count() == 2, "a row a policy: {out}");
}
