//! The examples print the promised lines, in whatever order their processes start.

use std::process::{Command, Stdio};

use laxity_testing::Directory;

#[test]
fn the_pipeline_filters_every_image_in_any_order_of_starts() {
    let expected = "10 images, 45 is the sum of their first pixels, doubled: 90\n";
    for roles in [["camera", "filter", "display"], ["display", "filter", "camera"], ["filter", "camera", "display"]] {
        assert_eq!(said(env!("CARGO_BIN_EXE_pipeline"), &roles), expected);
    }
}

#[test]
fn fork_and_join_are_processes_that_start_in_any_order() {
    for roles in [["split", "join"], ["join", "split"]] {
        assert_eq!(said(env!("CARGO_BIN_EXE_fork_join"), &roles), "joined 25 times: sum 4950, count 100\n");
    }
}

/// The same loop without a graph.
#[test]
fn what_is_fed_back_comes_two_jobs_later() {
    let (mut temperature, mut ordered) = (0, vec![0, 0]);
    let mut expected = Vec::new();
    for step in 0..20 {
        temperature += ordered[step];
        ordered.push((200 - temperature) / 4);
        expected.push(temperature.to_string());
    }
    let place = Directory::new("feedback");
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedback"));
    let output = command.env("LAXITY_DIRECTORY", place.path()).output().expect("it was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected.join(" "));
    assert!(place.is_empty());
}

#[test]
fn a_role_that_does_not_exist_is_refused() {
    let place = Directory::new("role");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pipeline"));
    let output = command.arg("cinema").env("LAXITY_DIRECTORY", place.path()).output().expect("it was built");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: pipeline camera|filter|display"));
    assert!(place.is_empty());
}

/// The output of all processes of `program`, one for each role, started in this order.
fn said(program: &str, roles: &[&str]) -> String {
    let place = Directory::new(&roles.join("-"));
    let start = |role: &&str| {
        let mut command = Command::new(program);
        command.arg(role).env("LAXITY_DIRECTORY", place.path()).stdout(Stdio::piped()).spawn().expect("it was built")
    };
    let processes: Vec<_> = roles.iter().map(start).collect();
    let mut said = String::new();
    for process in processes {
        let output = process.wait_with_output().expect("it ends");
        assert!(output.status.success());
        said.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    assert!(place.is_empty(), "the last one out took the graph along");
    said
}
