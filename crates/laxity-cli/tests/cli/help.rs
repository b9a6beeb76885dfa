//! What new users see.

use crate::support::run;

const VERBS: [&[&str]; 48] = [
    &["simulate"],
    &["run"],
    &["check"],
    &["trace"],
    &["trace", "x", "info"],
    &["trace", "x", "metrics"],
    &["trace", "x", "check"],
    &["trace", "x", "gantt"],
    &["trace", "x", "why"],
    &["trace", "x", "export"],
    &["report"],
    &["tune"],
    &["gen"],
    &["validate"],
    &["schema"],
    &["policies"],
    &["measure"],
    &["overheads"],
    &["gpu"],
    &["gpu", "create"],
    &["gpu", "list"],
    &["gpu", "top"],
    &["exec"],
    &["gpu", "exec"],
    &["gpu", "irq"],
    &["gpu", "trace"],
    &["gpu", "gc"],
    &["bandwidth"],
    &["bandwidth", "status"],
    &["bandwidth", "top"],
    &["bandwidth", "lock"],
    &["bandwidth", "regulate"],
    &["bandwidth", "threshold"],
    &["bandwidth", "hog"],
    &["graph"],
    &["graph", "run"],
    &["graph", "list"],
    &["graph", "watch"],
    &["graph", "show"],
    &["graph", "terminate"],
    &["graph", "gc"],
    &["sched"],
    &["sched", "doctor"],
    &["sched", "start"],
    &["sched", "measure"],
    &["sched", "status"],
    &["sched", "stop"],
    &["completions"],
];

/// The duration that nothing was said about is the same everywhere (`laxity_plan::default_duration`).
#[test]
fn verbs_say_alike_for_how_long_they_simulate() {
    for verb in ["simulate", "run", "report", "tune"] {
        let (_, out, _) = run([verb, "--help"]);
        let words: Vec<&str> = out.split_whitespace().collect();
        let said = words.join(" ");
        assert!(said.contains("[default: ten periods of each task after its phase, at least 1 s]"), "{verb}: {out}");
    }
}

#[test]
fn every_verb_explains_itself_and_those_with_arguments_give_examples() {
    for verb in VERBS {
        let (code, out, err) = run(verb.iter().chain(&["--help"]));
        assert_eq!((code, err.as_str()), (0, ""), "{verb:?}");
        assert!(out.contains("Usage: laxity"), "{verb:?}: {out}");
        let plain = matches!(verb, ["schema" | "policies"] | [_, _, "info"]);
        assert!(plain || out.contains("Examples:"), "{verb:?}: {out}");
    }
}

/// What stands in one of the two only would not be found.
#[test]
fn the_long_help_has_what_the_short_one_leaves_out() {
    let said = |verb: &[&str], option: &str| {
        let (code, out, _) = run(verb.iter().chain(&[option]));
        assert_eq!(code, 0, "{verb:?}");
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let pairs: [(&[&str], &str); 9] = [
        (&["simulate"], "the same schedule, byte for byte"),
        (&["check"], "Features that the analysis cannot treat are refused by name"),
        (&["trace"], "used up to where it broke"),
        (&["trace", "x", "check"], "a legal schedule at all"),
        (&["measure"], "Ctrl-C ends it, and then nothing is written"),
        (&["gen"], "the same bytes on any machine"),
        (&["gpu", "create"], "others may come and go"),
        (&["graph", "run"], "the earliest of those whose tokens"),
        (&["graph", "watch"], "Ctrl-C ends the watch, and nothing else"),
    ];
    for (verb, words) in pairs {
        assert!(said(verb, "--help").contains(words), "{verb:?} does not say {words:?}");
        assert!(!said(verb, "-h").contains(words), "{verb:?} -h says {words:?}");
    }
}

#[test]
fn without_a_verb_the_exit_codes_are_explained() {
    let (code, _, err) = run::<&str>([]);
    assert_eq!(code, 2);
    assert!(err.contains("Exit codes: 0 it worked; 1"), "{err}");
    let (code, out, _) = run(["--version"]);
    assert_eq!((code, out), (0, format!("laxity {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn an_unknown_verb_or_option_is_bad_usage() {
    assert_eq!(run(["simulat"]).0, 2);
    assert_eq!(run(["simulate", "x.toml", "--fro", "1s"]).0, 2);
}

#[test]
fn shells_complete_verbs_and_policies() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = run(["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("simulate"), "{shell}");
    }
    assert!(run(["completions", "fish"]).1.contains("S-CQm"));
}
