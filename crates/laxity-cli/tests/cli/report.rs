//! `laxity report`.

use std::fs;
use std::path::Path;

use laxity_model::Nanos;
use laxity_trace::codec::{TraceReader, TraceWriter};
use laxity_trace::{Event, Record, Sink};
use predicates::prelude::*;

use crate::support::{example, folder, laxity, run};

fn page(path: &Path) -> String {
    fs::read_to_string(path).expect("the page")
}

/// Nothing of a page may come from elsewhere.
fn is_self_contained(page: &str) -> bool {
    let outside = ["src=\"http", "href=", "url(", "<script", "@import"];
    outside.iter().all(|marker| !page.contains(marker))
}

#[test]
fn a_report_has_bounds_simulated_times_and_the_worst_jobs_on_one_page() {
    let folder = folder();
    let out = folder.path().join("camera.html");
    let (code, said, err) = run([
        "report".as_ref(),
        example("camera.toml").as_os_str(),
        "--no-run".as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
    ]);
    assert_eq!(code, 0, "{err}");
    assert!(
        said.starts_with("Proven: every job meets its deadline; lidar has the least laxity, 20.28 ms.\n"),
        "{said}"
    );
    assert!(err.contains("left out: the live run: --no-run was given"), "{err}");
    let page = page(&out);
    assert!(is_self_contained(&page));
    for part in ["59.720", "59.200", "camera has it, more urgent", "data:image/svg+xml,", "Where the laxity went"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<figure>").count(), 3 + 1 + 2, "three tasks, what they were spent with, two charts");
}

#[test]
fn a_report_of_traces_compares_them_and_says_which_was_cut_off() {
    let folder = folder();
    let (rm, edf) = (folder.path().join("rm.lxt"), folder.path().join("edf <b>.lxt"));
    for (policy, path) in [("P-RM", &rm), ("G-EDF", &edf)] {
        let words = ["simulate", "--quiet", "--for", "1s", "--policy", policy, "--trace"];
        laxity().args(words).args([path, &example("camera.toml")]).assert().success();
    }
    let whole = fs::read(&edf).expect("a trace");
    fs::write(&edf, &whole[..whole.len() - 20]).expect("cut off");
    let out = folder.path().join("both.html");
    laxity()
        .args(["report".as_ref(), rm.as_os_str(), edf.as_os_str(), "-o".as_ref(), out.as_os_str()])
        .assert()
        .code(1)
        .stderr(predicate::str::is_match("error: .*edf <b>.lxt: .* up to [0-9.]+ m?s\n$").expect("a pattern"));
    let page = page(&out);
    assert!(page.contains("edf &lt;b&gt;") && !page.contains("edf <b>"), "names cannot become markup");
    assert!(page.contains("rm: median") && !page.contains("proven bound"));
}

/// The bounds of a workload beside what was recorded of it: they are held against runs by its own policy alone.
#[test]
fn a_report_of_a_workload_and_traces_of_it_has_bounds_beside_them() {
    let folder = folder();
    let [same, other, part] = ["same.lxt", "other.lxt", "part.html"].map(|name| folder.path().join(name));
    for (policy, path) in [("P-RM", &same), ("G-EDF", &other)] {
        let words = ["simulate", "--quiet", "--for", "1s", "--policy", policy, "--trace"];
        laxity().args(words).args([path, &example("camera.toml")]).assert().success();
    }
    let camera = example("camera.toml");
    let files = [camera.as_os_str(), same.as_os_str(), other.as_os_str()];
    let (code, said, err) =
        run(["report".as_ref(), "--part".as_ref(), "-o".as_ref(), part.as_os_str()].into_iter().chain(files));
    assert_eq!(code, 0, "{err}");
    assert!(said.contains("Same: 0 of 61 jobs late") && said.contains("Other: "), "{said}");
    assert!(!err.contains("the live run"), "the traces are in its place: {err}");
    let part = page(&part);
    assert!(is_self_contained(&part) && !part.contains("<style") && !part.contains("<body"));
    assert!(part.starts_with("<div class=\"verdict\">") && part.contains("<h3>Response times, ms</h3>"));
    assert!(!part.contains("<h2>") && !part.contains("</h2>"));
    assert!(part.contains("The bounds are not about other: it is under G-EDF/CEm."));
    assert!(!part.contains("The bounds are not about same") && !part.contains("The bounds are not about simulated"));
}

/// As on a machine that costs more than the file says, and on one whose CPU a hypervisor took.
#[test]
fn a_job_beyond_its_bound_is_named_explained_and_drawn() {
    let folder = folder();
    let [longer, trace, stolen, out] =
        ["w.toml", "late.lxt", "stolen.lxt", "late.html"].map(|name| folder.path().join(name));
    let camera = example("camera.toml");
    let text = fs::read_to_string(&camera).expect("the example").replace("wcet = \"35 ms\"", "wcet = \"36 ms\"");
    fs::write(&longer, text).expect("written");
    laxity().args(["simulate", "--quiet", "--for", "1s", "--trace"]).args([&trace, &longer]).assert().success();
    let report = |trace: &Path| {
        let (code, said, err) =
            run(["report".as_ref(), camera.as_os_str(), trace.as_os_str(), "-o".as_ref(), out.as_os_str()]);
        assert_eq!(code, 0, "{err}");
        (said, page(&out))
    };
    let (said, page) = report(&trace);
    assert!(said.contains("Longer than proven, late: lidar ("), "{said}");
    assert!(said.contains("it is of another workload than the proof, or the analysis has a defect"), "{said}");
    let worst = page.split("The worst jobs").nth(1).expect("the worst jobs");
    assert!(worst.contains(", late: ") && worst.contains("data:image/svg+xml,"));
    write_stolen(&trace, &stolen);
    let (said, page) = report(&stolen);
    assert!(said.contains("its CPU was stolen for ") && said.contains("No bound knows of time"), "{said}");
    assert!(page.contains("CPU stolen from all threads"), "the picture shows it");
}

/// The trace `from`, with the CPU of the lidar stolen for 40 ms until each of its completions.
fn write_stolen(from: &Path, to: &Path) {
    let reader = TraceReader::new(fs::File::open(from).expect("the trace")).expect("a trace");
    let header = reader.header().clone();
    let mut writer = TraceWriter::new(fs::File::create(to).expect("a file"), &header).expect("written");
    for record in reader {
        let Record { at, event } = record.expect("whole");
        if let Event::Complete { cpu, job } = event
            && header.tasks[job.task.index()].name == "lidar"
        {
            writer.record(at, Event::Stolen { cpu, duration: Nanos::from_millis(40) });
        }
        writer.record(at, event);
    }
    writer.finish().expect("written");
}

#[test]
fn traces_of_another_workload_and_two_workloads_make_no_report() {
    let folder = folder();
    let trace = folder.path().join("other.lxt");
    laxity()
        .args(["simulate", "--quiet", "--for", "1s", "--trace"])
        .args([&trace, &example("quickstart.toml")])
        .assert()
        .success();
    let with = |other: &Path| {
        laxity().args(["report".as_ref(), example("camera.toml").as_os_str(), other.as_os_str()]).assert()
    };
    with(&trace).code(2).stderr(predicate::str::contains("name traces of that workload"));
    with(&example("quickstart.toml"))
        .code(2)
        .stderr(predicate::str::contains("a report is about one workload, which comes first, and traces"));
}

/// Only the task that failed first was named, and the bound of the chain was shown as any other.
#[test]
fn a_chain_beyond_its_deadline_is_named_beside_a_task_that_fails() {
    let folder = folder();
    let (file, out) = (folder.path().join("w.toml"), folder.path().join("w.html"));
    let text = r#"
        laxity = 1
        name = "w"
        scheduler = "P-RM"
        platform = { cpus = 2 }
        task = [
            { name = "high", period = "10 ms", wcet = "3 ms", cluster = 0 },
            { name = "low", period = "20 ms", wcet = "4 ms", deadline = "5 ms", cluster = 0 },
        ]
        [[graph]]
        name = "g"
        latest = ["s -> a"]
        node = [
            { name = "s", period = "10 ms", wcet = "1 ms", cluster = 1 },
            { name = "a", period = "10 ms", phase = "5 ms", wcet = "1 ms", cluster = 1 },
        ]
        [[chain]]
        name = "sa"
        path = ["g/s", "g/a"]
        data_age_max = "5 ms"
    "#;
    fs::write(&file, text).expect("written");
    let words = ["report".as_ref(), file.as_os_str(), "--no-run".as_ref(), "-o".as_ref(), out.as_os_str()];
    let (code, said, err) = run(words);
    assert_eq!(code, 0, "{err}");
    let first = said.lines().next().expect("a line");
    assert!(first.contains("low") && first.contains("; chain \"sa\": the bound on its data age, "), "{said}");
    let page = page(&out);
    let row = page.split("<td class=\"words\">data age</td>").nth(1).and_then(|rest| rest.split("</tr>").next());
    let row = row.expect("a row for the data age");
    assert!(row.contains("<td>5.000</td><td><span class=\"bad\">"), "the bound beside the deadline: {row}");
}
