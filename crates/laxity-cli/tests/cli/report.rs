//! `laxity report`.

use std::fs;
use std::path::Path;

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
        .success()
        .stderr(predicate::str::contains("left out: the end of edf <b>"));
    let page = page(&out);
    assert!(page.contains("edf &lt;b&gt;") && !page.contains("edf <b>"), "names cannot become markup");
    assert!(page.contains("rm: median") && !page.contains("proven bound"));
}

#[test]
fn a_workload_and_a_trace_make_no_report_together() {
    laxity()
        .args(["report".as_ref(), example("camera.toml").as_os_str(), "x.lxt".as_ref()])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("a report is about one workload or about traces"));
}
