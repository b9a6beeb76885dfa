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
