//! `laxity check --jsonl`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{laxity, stderr, stdout};

fn answers(input: &str) -> (i32, Vec<Value>, String) {
    let output = laxity().args(["check", "--jsonl"]).write_stdin(input).output().expect("runs");
    let lines = stdout(&output).lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    (output.status.code().expect("not killed"), lines, stderr(&output))
}

/// Three sets whose verdicts are known: base4, gfb-fail and one that an unsound test would accept.
#[test]
fn each_line_is_answered_with_the_verdict_of_every_test() {
    let input = "\
        {\"m\": 2, \"tasks\": [[1,4,4],[2,5,5],[3,10,10],[2,8,8]]}\n\
        {\"tasks\": [[4,5,5],[4,10,10],[4,10,10]], \"m\": 2, \"id\": \"gfb-fail\"}\n\
        {\"m\": 2, \"tasks\": [[2,10,2],[2,10,2],[1,10,2]]}\n";
    let (code, lines, err) = answers(input);
    assert_eq!((code, err.as_str()), (0, ""));
    let base4 = json!({
        "gfb": true, "bak": true, "bcl": false, "bcl_iterative": true, "bar": true, "bar_le": true, "rta": true,
        "rta_slack": true, "ffdbf": true, "srt": true, "tardiness": [1, 1, 2, 1],
    });
    assert_eq!(lines[0], base4);
    assert_eq!((&lines[1]["gfb"], &lines[1]["bar"]), (&json!(false), &json!(true)));
    for test in ["gfb", "bak", "bcl", "bcl_iterative", "bar", "bar_le", "rta", "rta_slack", "ffdbf"] {
        assert_eq!(lines[2][test], false, "{test} must not accept a set that misses at 3");
    }
    assert_eq!(lines.len(), 3);
}

#[test]
fn keys_stand_in_the_order_of_the_documentation() {
    let output =
        laxity().args(["check", "--jsonl"]).write_stdin("{\"m\":1,\"tasks\":[[1,2,2]]}").output().expect("runs");
    assert_eq!(
        stdout(&output),
        "{\"gfb\":true,\"bak\":true,\"bcl\":true,\"bcl_iterative\":true,\"bar\":true,\"bar_le\":true,\"rta\":true,\
         \"rta_slack\":true,\"ffdbf\":null,\"srt\":true,\"tardiness\":[0]}\n"
    );
}

#[test]
fn what_does_not_apply_is_null() {
    let (code, lines, _) = answers("{\"m\": 2, \"tasks\": [[1,4,8],[2,5,5]]}\n{\"m\":1,\"tasks\":[[3,4,4],[3,4,4]]}\n");
    assert_eq!(code, 0);
    assert_eq!((&lines[0]["gfb"], &lines[0]["rta"], &lines[0]["srt"]), (&json!(true), &Value::Null, &json!(true)));
    assert_eq!(
        (&lines[1]["gfb"], &lines[1]["srt"], &lines[1]["tardiness"]),
        (&json!(false), &json!(false), &Value::Null)
    );
}

#[test]
fn a_malformed_line_gets_an_error_with_its_number_and_the_others_are_answered() {
    let good = "{\"m\":1,\"tasks\":[[1,2,2]]}";
    let input =
        format!("{good}\nnot json\n\n{{\"m\":1,\"tasks\":[[1,2]]}}\n{{\"m\":0,\"tasks\":[]}}\n\u{fffd}\n{good}");
    let (code, lines, err) = answers(&input);
    assert_eq!(code, 1);
    assert_eq!(err, "error: 4 of 6 lines are malformed\n");
    let errors: Vec<(usize, u64)> =
        (0..lines.len()).filter_map(|at| Some((at, lines[at].get("error").and(lines[at]["line"].as_u64())?))).collect();
    assert_eq!(errors, [(1, 2), (2, 4), (3, 5), (4, 6)]);
    assert_eq!(lines[0]["gfb"], true);
    assert_eq!(lines[5]["gfb"], true);
    assert_eq!(
        lines[2]["error"],
        "invalid length 2, expected an array of length 3 at column 21; a line is {\"m\": CPUS, \"tasks\": [[WCET, PERIOD, \
         DEADLINE], ...]} in whole ticks"
    );
    assert_eq!(lines[3]["error"], "0 cpus given; analysis needs 1 to 65536");
}

#[test]
fn thousands_of_lines_are_answered_in_their_order() {
    // The utilization condition of line i is what i says.
    let input: String = (0..3_000u32)
        .map(|i| format!("{{\"m\":1,\"tasks\":[[1,2,2],[{},{},5]]}}\n", 1 + (i * i + i / 3) % 5, 5))
        .collect();
    let (code, lines, _) = answers(&input);
    assert_eq!((code, lines.len()), (0, 3_000));
    for (i, line) in lines.iter().enumerate() {
        let wcet = 1 + (i * i + i / 3) % 5;
        assert_eq!(line["srt"], wcet <= 2, "line {i}: {line}");
    }
}

#[test]
fn a_line_is_answered_before_the_next_one_is_sent() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut questions = child.stdin.take().expect("piped");
    let mut answers = BufReader::new(child.stdout.take().expect("piped")).lines();
    for wcet in [1, 3, 2] {
        writeln!(questions, "{{\"m\":1,\"tasks\":[[{wcet},2,2]]}}").expect("it listens");
        let answer: Value = serde_json::from_str(&answers.next().expect("a line").expect("text")).expect("JSON");
        assert_eq!(answer["srt"], wcet <= 2);
    }
    drop(questions);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut questions = child.stdin.take().expect("piped");
    // It ends while there is still input: sooner or later no process reads.
    while writeln!(questions, "{{\"m\":1,\"tasks\":[[1,2,2]]}}").is_ok() {}
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn nothing_in_nothing_out() {
    assert_eq!(answers(""), (0, vec![], String::new()));
}
