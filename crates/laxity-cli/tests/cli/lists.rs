//! `laxity policies` and `laxity overheads`.

use crate::support::run;

#[test]
fn policies_marks_the_nine_that_were_measured() {
    let (code, out, _) = run(["policies"]);
    assert_eq!(code, 0);
    let marked: Vec<&str> = out
        .lines()
        .filter_map(|line| line.trim_start().split_once('*'))
        .map(|(name, _)| name.trim())
        .filter(|name| name.len() <= 5)
        .collect();
    assert_eq!(marked, ["CEm", "CE1", "CQm", "CQ1", "FEm", "FE1", "HEm", "S-CQm", "S-CQ1"]);
    for name in ["G-EDF", "C-RM", "P-DM", "G-FP", "C-CFS", "HQ1"] {
        assert!(out.lines().any(|line| line.trim_start().starts_with(name)), "{name}");
    }
}

/// Table 2 of paper 002: CEm at 50 tasks, in us.
#[test]
fn overheads_are_those_of_the_paper() {
    let (code, out, _) = run(["overheads", "brandenburg2009-CEm-worst-aligned"]);
    assert_eq!(code, 0);
    let rows: Vec<&str> = out.lines().skip(3).collect();
    assert_eq!(rows.len(), 9, "50 to 450 tasks:\n{out}");
    let fifty: Vec<&str> = rows[0].split_whitespace().collect();
    let (_, listed, _) = run(["overheads", "-n", "50"]);
    let row = listed.lines().find(|line| line.starts_with("brandenburg2009-CEm-worst-aligned")).expect("listed");
    // The list has columns that only other profiles fill.
    let known: Vec<&str> = row.split_whitespace().skip(1).filter(|cell| *cell != "-").collect();
    assert_eq!(known, fifty[1..]);
    assert_eq!(listed.lines().filter(|line| line.starts_with("brandenburg2009-")).count(), 28);
}

#[test]
fn an_unknown_profile_is_refused_with_a_suggestion() {
    let (code, _, err) = run(["overheads", "elliott2012-klmirq"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `elliott2012-klmirqd`?"), "{err}");
}

/// It was "unknown overhead profile `none`; did you mean `none`?".
#[test]
fn a_family_lists_its_profiles_and_none_costs_nothing() {
    assert_eq!(run(["overheads", "none"]), (0, "none costs nothing\n".to_owned(), String::new()));
    let (code, out, _) = run(["overheads", "brandenburg2009-worst", "-n", "50"]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("-worst-")).count(), 14, "{out}");
    assert!(out.contains("at 50 tasks") && !out.contains("-average-"), "{out}");
}

#[test]
fn a_number_of_tasks_is_heeded_for_one_profile_too() {
    let name = "brandenburg2009-CEm-worst-aligned";
    let rows = |words: &[&str]| {
        let (code, out, err) = run(["overheads"].iter().chain(words));
        assert_eq!(code, 0, "{err}");
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        out.lines().skip(3).map(cells).collect::<Vec<_>>()
    };
    let (measured, asked) = (rows(&[name]), rows(&[name, "-n", "100"]));
    assert_eq!(asked, measured[1..2], "the second point is that of 100 tasks");
    assert_eq!(rows(&[name, "-n", "125"]).len(), 1, "between two points");
}
