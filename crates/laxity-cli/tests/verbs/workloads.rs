//! Whole workloads under every verb: the examples, and generated ones. Nothing is refused but what the page of features
//! names, no simulated response time exceeds a proven bound, and each trace is a legal schedule.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::verb::{self, Answer};

/// How many workloads are generated; the long form takes 500.
const COUNT: &str = "LAXITY_WORKLOADS";
/// The first seed, to draw one of them again.
const SEED: &str = "LAXITY_SEED";

/// What is drawn, in turn: light sets, heavy ones, many small periods, and sets that use GPUs.
const SPECS: [&[&str]; 5] = [
    &["uni-light/moderate", "cap=0.8"],
    &["uni-medium/moderate", "cap=1.4"],
    &["bimo-light/short", "cap=1.2"],
    &["exp-light/multimedia", "cap=1", "gpu=0.1..0.2"],
    &["uni-light/long", "cap=0.7", "gpu=0.2..0.3"],
];
const POLICIES: [&str; 5] = ["G-EDF", "P-RM", "G-RM", "P-EDF", "C-EDF"];
const ARBITRATIONS: [&str; 4] = ["driver", "k_fmlp", "gpusync", "semaphore"];
const HANDLINGS: [&str; 4] = ["linux", "preempt_rt_high", "pai", "klmirqd"];

/// A number that an environment variable gives.
fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Whether the page of features has each of the reasons in `reason`: the same words, where names and numbers may differ.
fn is_on_the_page(reason: &str, page: &str) -> bool {
    // A report that leaves a part out has all reasons in one line.
    let whole = reason.strip_prefix("without the live run: ").unwrap_or(reason);
    let mut parts = whole.split("simulate; ");
    parts.all(|part| is_one_on_the_page(part.trim_end_matches(" or simulate").trim_end_matches(" or "), page))
}

fn is_one_on_the_page(reason: &str, page: &str) -> bool {
    // From the first colon on, as what precedes it names the thing.
    let words = |text: &str| {
        let text = text.strip_prefix("without the live run: ").unwrap_or(text).trim_end_matches(" or simulate");
        let text = text.split_once(": ").map_or(text, |(_, why)| why);
        let is_name = |word: &&str| !word.contains(|letter: char| letter.is_ascii_digit() || letter == '"');
        text.split_whitespace().filter(is_name).map(str::to_owned).collect::<Vec<String>>()
    };
    let wanted = words(reason);
    let mut reasons = page.lines().filter_map(|line| line.split_once("</a>")).map(|(_, reason)| words(reason));
    reasons.any(|reason| reason == wanted)
}

/// What JSON says of each task: its name and the field of that path.
fn times(text: &str, field: &str) -> Vec<(String, Option<u64>)> {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let tasks = document["tasks"].as_array().expect("tasks");
    let time =
        |task: &Value| (task["name"].as_str().expect("a name").to_owned(), task.pointer(field).and_then(Value::as_u64));
    tasks.iter().map(time).collect()
}

/// The tasks of `file` that were simulated to take longer than what is proven, with the two times.
fn excesses(file: &str) -> Vec<String> {
    let proven = verb::laxity(&["check", "--no-scaling", "--json", file]);
    let bounds = times(&String::from_utf8_lossy(&proven.stdout), "/response_time_ns");
    let simulated = verb::laxity(&["simulate", "--quiet", "--json", "--for", "1s", file]);
    assert!(simulated.status.success(), "{file}: {}", verb::errors(&simulated));
    let seen = times(&String::from_utf8_lossy(&simulated.stdout), "/response_time_ns/max");
    let bound_of = |name: &str| bounds.iter().find(|(task, _)| task == name).and_then(|&(_, bound)| bound);
    let exceeds = |(name, seen): (String, Option<u64>)| {
        let (bound, seen) = (bound_of(&name)?, seen?);
        (seen > bound).then(|| format!("{file}: {name} takes {seen} ns, and {bound} ns are proven"))
    };
    seen.into_iter().filter_map(exceeds).collect()
}

/// Takes `file` through the verbs; what was refused that `page` does not name, and what was wrong.
fn faults(file: &str, folder: &Path, page: &str, live: bool) -> Vec<String> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (simulated, recorded) = (path("simulated.lxt"), path("live.lxt"));
    for trace in [&simulated, &recorded] {
        let _ = fs::remove_file(trace);
    }
    let mut answers = vec![
        ("check", verb::check(file)),
        ("simulate", verb::simulate(file, &simulated)),
        ("trace check of the simulation", verb::trace_check(&simulated)),
        ("tune", verb::tune(file)),
    ];
    if live {
        answers.push(("run", verb::run(file, &recorded)));
        answers.push(("trace check of the run", verb::trace_check(&recorded)));
        answers.push(("report", verb::report(file, &path("page.html"))));
    }
    let mut faults = Vec::new();
    for (verb, answer) in answers {
        let (Answer::Part(reasons) | Answer::Refused(reasons)) = answer else { continue };
        let not_named = |reason: &&String| !reason.starts_with("not proven") && !is_on_the_page(reason, page);
        faults.extend(reasons.iter().filter(not_named).map(|reason| format!("{file}: {verb}: {reason}")));
    }
    faults.extend(excesses(file));
    faults
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/features.md");
    fs::read_to_string(path).expect("the page of features")
}

#[test]
fn every_verb_takes_every_example() {
    let (_alone, obstacle) = verb::obstacle();
    let live = obstacle.inspect(|reason| laxity_testing::skip(format!("live runs: {reason}"))).is_none();
    let (folder, page) = (folder("examples"), page());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads");
    let mut files: Vec<PathBuf> =
        fs::read_dir(examples).expect("examples").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() > 8, "{files:?}");
    let faults: Vec<String> =
        files.iter().flat_map(|file| faults(&file.to_string_lossy(), &folder, &page, live)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Nodes on both GPUs are due at the same time, so that their order hangs on nanoseconds: an interrupt thread must be ranked in
/// the trace exactly as the node is that lends it its priority. One run in six showed when it was not. And an owner that goes on
/// while its interrupt thread works must not run beside it: one run in fifty showed when it did.
#[test]
fn interrupt_threads_are_ranked_as_their_owners_and_never_beside_them_in_every_run() {
    let (_alone, obstacle) = verb::obstacle();
    if let Some(reason) = obstacle {
        return laxity_testing::skip(format!("live runs: {reason}"));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads/gpu_pool.toml");
    let recorded = folder("ranked").join("live.lxt").to_string_lossy().into_owned();
    for run in 0..20 {
        assert!(matches!(verb::run(&file.to_string_lossy(), &recorded), Answer::Done), "run {run}");
        let found = verb::trace_check(&recorded);
        assert!(matches!(found, Answer::Done), "run {run}: {found:?}");
    }
}

/// `LAXITY_WORKLOADS=500 cargo test -p laxity-cli --test verbs generated` is the long form.
#[test]
fn every_verb_takes_generated_workloads() {
    let (_alone, obstacle) = verb::obstacle();
    let live = obstacle.inspect(|reason| laxity_testing::skip(format!("live runs: {reason}"))).is_none();
    let (folder, page) = (folder("generated"), page());
    let (first, count) = (number(SEED, 0), number(COUNT, 20));
    let mut found = Vec::new();
    for seed in first..first + count {
        let file = generated(seed, &folder);
        let faults = faults(&file, &folder, &page, live);
        found.extend(faults.iter().map(|fault| format!("{SEED}={seed} {COUNT}=1: {fault}")));
    }
    assert!(found.is_empty(), "seeds {first} to {}:\n{}", first + count - 1, found.join("\n"));
}

/// The workload of `seed`, as a file.
fn generated(seed: u64, folder: &Path) -> String {
    let pick = |list: &[&'static str], turn: u64| list[(seed / turn) as usize % list.len()];
    let spec = SPECS[seed as usize % SPECS.len()];
    let file = folder.join("drawn.toml").to_string_lossy().into_owned();
    let seed_text = seed.to_string();
    let mut words = vec!["gen"];
    words.extend(spec);
    words.extend(["--seed", &seed_text, "--policy", pick(&POLICIES, 1), "-o", &file]);
    let uses_gpus = spec.len() > 2;
    if !uses_gpus {
        words.extend(["--cpus", "2"]);
    }
    let output = verb::laxity(&words);
    assert!(output.status.success(), "{words:?}: {}", verb::errors(&output));
    if uses_gpus {
        // A generated file leaves its GPUs to the driver.
        let text = fs::read_to_string(&file).expect("the file");
        let management = format!(
            "[gpu_management]\narbitration = \"{}\"\nhandling = \"{}\"\n",
            pick(&ARBITRATIONS, SPECS.len() as u64),
            pick(&HANDLINGS, 7),
        );
        let text: String = match text.split_once("[gpu_management]") {
            None => text + "\n" + &management,
            Some((before, after)) => {
                let rest = after.find("\n[").map_or("", |at| &after[at + 1..]);
                format!("{before}{management}{rest}")
            }
        };
        fs::write(&file, text).expect("the file");
    }
    file
}
