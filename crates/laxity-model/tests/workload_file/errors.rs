//! Messages: where, what, both values, the way out. Expectations are whole messages, because people read them.

use laxity_model::{ErrorKind, Position, Workload};

fn refuse(text: &str) -> Vec<String> {
    let errors = Workload::from_toml(text, "f.toml").expect_err("a mistake");
    errors.errors().iter().map(ToString::to_string).collect()
}

/// A file of one task; `task` begins on line 6.
fn refuse_task(task: &str) -> Vec<String> {
    refuse(&format!("laxity = 1\nname = \"w\"\nplatform.cpus = 2\n[[task]]\nname = \"lidar\"\n{task}"))
}

#[test]
fn an_infeasible_task_is_shown_with_its_line_and_name() {
    let text = "laxity = 1\nname = \"w\"\nplatform.cpus = 2\n[[task]]\nname = \"lidar\"\nperiod = \"20 ms\"\n\
                wcet = \"12 ms\"\n  deadline = \"10 ms\"\n";
    let errors = Workload::from_toml(text, "f.toml").expect_err("a mistake").into_vec();
    assert_eq!(errors.len(), 1);
    let error = &errors[0];
    assert_eq!(
        error.to_string(),
        "f.toml:8:14: task 0 \"lidar\": wcet 12 ms exceeds relative deadline 10 ms; no policy can meet it, so lower \
         the wcet or extend the deadline"
    );
    assert_eq!(error.path.to_string(), "task[0].deadline");
    assert_eq!(error.position, Some(Position { line: 8, column: 14 }));
    assert_eq!(error.file.as_deref(), Some("f.toml"));
    assert_eq!(error.kind, ErrorKind::Infeasible);
}

#[test]
fn unknown_fields_are_refused_with_a_suggestion() {
    assert_eq!(
        refuse_task("period = \"20 ms\"\nwcet = \"12 ms\"\ndedline = \"10 ms\"\n"),
        ["f.toml:8:1: task 0 \"lidar\": unknown field `dedline`; did you mean `deadline`?"]
    );
    assert_eq!(
        refuse("laxity = 1\nname = \"w\"\nplatform = { cpus = 1, cups = 2 }\n[[tasks]]\n"),
        [
            "f.toml:3:24: platform: unknown field `cups`; did you mean `cpus`?",
            "f.toml:4:3: unknown field `tasks`; did you mean `task`?"
        ]
    );
    assert_eq!(
        refuse_task("period = \"20 ms\"\nwcet = \"12 ms\"\ncolour = 3\n"),
        ["f.toml:8:1: task 0 \"lidar\": unknown field `colour`; write one of `name`, `arrival`, `gap`, `period`, \
          `deadline`, `phase`, `jitter`, `priority`, `cluster`, `working_set`, `budget`, `server`, \
          `memory_demand`, `memory_budget`, `wcet`, `actual` and 2 more"]
    );
}

#[test]
fn missing_fields_point_to_their_table() {
    assert_eq!(
        refuse_task(""),
        [
            "f.toml:4:1: task 0 \"lidar\": `period` is missing; write `period = \"10 ms\"`",
            "f.toml:4:1: task 0 \"lidar\": `wcet` is missing; write `wcet = \"5 ms\"`, or `body = [...]` for more than \
             CPU time"
        ]
    );
    assert_eq!(
        refuse(""),
        [
            "f.toml:1:1: `laxity` is missing; write `laxity = 1`, the version of the file format",
            "f.toml:1:1: `name` is missing; write `name = \"...\"`",
            "f.toml:1:1: `platform` is missing; write `[platform]` with `cpus = ...`",
        ]
    );
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_the_file() {
    let text = "laxity = 2\nname = \"w\"\n[platform]\ncpus = \"two\"\ntick = \"1 msec\"\n[[task]]\nname = \"a\"\n\
                period = 5\nwcet = \"0.5 ns\"\n[[task]]\nname = \"b\"\nperiod = \"1 ms\"\nwcet = \"2 ms\"\n\
                [[task]]\nname = \"b\"\nperiod = \"0 ms\"\nbody = [{ cpuu = \"1 ms\" }, { kernel = \"1 ms\", cpu = \"1 ms\" }]\n";
    assert_eq!(
        refuse(text),
        [
            "f.toml:1:10: `laxity` is 2, but this version of Laxity reads format 1; upgrade one of them",
            "f.toml:4:8: platform: `cpus` is the text \"two\"; write a whole number from 1 to 1024",
            "f.toml:5:8: platform: `tick` \"1 msec\" has the unknown unit `msec`; write one of `ps`, `ns`, `us`, `ms`, \
             `s`, `min`, `h`",
            "f.toml:8:10: task 0 \"a\": `period` is the number 5; write a span of time with its unit, as in \"5 ms\"",
            "f.toml:9:8: task 0 \"a\": `wcet` \"0.5 ns\" is finer than 1 ns; round it to a whole multiple of 1 ns",
            "f.toml:12:10: task 1 \"b\": wcet 2 ms exceeds relative deadline 1 ms; no policy can meet it, so lower the \
             wcet or extend the deadline",
            "f.toml:17:9: task 2 \"b\" body[0]: has the unknown action `cpuu`; did you mean `cpu`?",
            "f.toml:17:28: task 2 \"b\" body[1]: does both `cpu` and `kernel`; make it two steps",
        ]
    );
}

#[test]
fn unknown_names_are_refused_with_the_names_there_are() {
    let text = "laxity = 1\nname = \"w\"\nplatform.cpus = 1\n[[resource]]\nname = \"map\"\n[[task]]\nname = \"t\"\n\
                period = \"9 ms\"\nbody = [{ cpu = \"1 ms\" }, { critical = \"mpa\", body = [{ cpu = \"1 ms\" }] }, \
                { kernel = \"1 ms\", gpu = \"g\" }]\n\
                [[graph]]\nname = \"g\"\nedge = [\"A -> B\", { from = \"C\", to = \"A\" }, \"A B\"]\n\
                [[graph.node]]\nname = \"A\"\nperiod = \"9 ms\"\nwcet = \"1 ms\"\n";
    assert_eq!(
        refuse(text),
        [
            "f.toml:9:40: task 0 \"t\" body[1]: `critical` names the unknown resource \"mpa\"; did you mean `map`?",
            "f.toml:9:101: task 0 \"t\" body[2]: `gpu` names the unknown GPU \"g\"; the file defines no GPU, so define \
             it or remove the reference",
            "f.toml:12:9: graph 0 \"g\" edge 0: names the unknown node \"B\"; write one of `A`",
            "f.toml:12:28: graph 0 \"g\" edge 1: `from` names the unknown node \"C\"; write one of `A`",
            "f.toml:12:45: graph 0 \"g\" edge 2: \"A B\" is no edge; write it like \"A -> B\"",
        ]
    );
}

#[test]
fn schedulers_and_profiles_are_suggested() {
    let refuse = |scheduler: &str, overheads: &str| {
        refuse(&format!(
            "laxity = 1\nname = \"w\"\nscheduler = {scheduler}\nplatform = {{ cpus = 2, overheads = {overheads} }}\n"
        ))
    };
    let errors = refuse("\"G-EFD\"", "\"nome\"");
    assert!(errors[0].starts_with("f.toml:3:13: `scheduler` names an unknown scheduler `G-EFD`: write"), "{errors:?}");
    assert!(errors[0].ends_with("; did you mean `G-EDF`?"), "{errors:?}");
    assert_eq!(
        errors[1],
        "f.toml:4:36: platform: `overheads` names an unknown overhead profile `nome`; did you mean `none`?"
    );
    assert_eq!(
        refuse("{ policy = \"G-EDF\", rule = \"RM\", quanta = \"alinged\" }", "\"none\""),
        [
            "f.toml:3:40: scheduler: `rule` is said by `policy` already; remove one of the two",
            "f.toml:3:55: scheduler: `quanta` is the unknown word \"alinged\"; did you mean `aligned`?",
        ]
    );
}

#[test]
fn broken_text_is_reported_as_such() {
    let errors = Workload::from_toml("laxity = \nname = \"w\n", "f.toml").expect_err("no TOML").into_vec();
    assert!(errors.len() >= 2, "every mistake is reported: {errors:?}");
    assert!(errors.iter().all(|error| error.kind == ErrorKind::Syntax));
    assert_eq!(errors[0].position.map(|position| position.line), Some(1));
    let error = Workload::from_json("{\n  \"laxity\": 1,\n}", "f.json").expect_err("no JSON");
    assert_eq!(error.to_string(), "f.json:3:1: not JSON: expected a key in double quotes");
    let error = Workload::from_json("[]", "f.json").expect_err("no table").into_vec().remove(0);
    assert_eq!(error.to_string(), "f.json:1:1: the file is a list; write a table");
}

#[test]
fn errors_in_json_have_positions_too() {
    let json = "{ \"laxity\": 1, \"name\": \"w\", \"platform\": { \"cpus\": 2 },\n  \"task\": [{ \"name\": \"t\",\n    \
                \"period\": \"5 parsecs\", \"wcet\": null }] }";
    let errors = Workload::from_json(json, "f.json").expect_err("mistakes");
    assert_eq!(
        errors.to_string(),
        "f.json:3:15: task 0 \"t\": `period` \"5 parsecs\" has the unknown unit `parsecs`; write one of `ps`, `ns`, \
         `us`, `ms`, `s`, `min`, `h`\n\
         f.json:3:36: task 0 \"t\": `wcet` is null; write a span of time with its unit, as in \"5 ms\""
    );
}

/// Camera (33 ms) -> detect, lidar (100 ms), fusion (50 ms), with these latest-value edges and chains.
fn fusion(latest: &str, chains: &str) -> String {
    format!(
        "laxity = 1\nname = \"w\"\nplatform.cpus = 1\n\
         [[graph]]\nname = \"g\"\nedge = [\"camera -> detect\"]\nlatest = [{latest}]\n\
         node = [{{ name = \"camera\", period = \"33 ms\", wcet = \"1 ms\" }}, {{ name = \"detect\", wcet = \"1 ms\" }}, \
         {{ name = \"lidar\", period = \"100 ms\", wcet = \"1 ms\" }}, \
         {{ name = \"fusion\", period = \"50 ms\", wcet = \"1 ms\" }}]\n{chains}"
    )
}

#[test]
fn latest_value_edges_join_rates_that_tokens_cannot_and_their_mistakes_are_placed() {
    let text = fusion("\"detect -> fusion\", { from = \"lidar\", to = \"fusion\" }", "");
    Workload::from_text(&text, "f.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        refuse(&fusion("\"detect -> fusion\", \"lidar -> lidar\", \"detect -> fusion\", \"radar -> fusion\"", "")),
        ["f.toml:7:69: graph 0 \"g\" latest 3: names the unknown node \"radar\"; write one of `camera`, `detect`, \
          `lidar`, `fusion`"]
    );
    assert_eq!(
        refuse(&fusion("\"detect -> fusion\", \"lidar -> lidar\", \"detect -> fusion\"", "")),
        [
            "f.toml:7:31: graph 0 \"g\" latest 1: leads from \"lidar\" to itself; a node has its own last value, so \
             remove it",
            "f.toml:7:49: graph 0 \"g\" latest 2: is a second one from \"detect\" to \"fusion\"; remove one of them",
        ]
    );
}

#[test]
fn a_chain_is_a_path_from_a_source_along_edges() {
    let chain = |path: &str, more: &str| {
        let chain = format!("[[chain]]\nname = \"c\"\npath = [{path}]\n{more}");
        fusion("\"detect -> fusion\"", &chain)
    };
    let good = chain("\"g/camera\", \"g/detect\", \"g/fusion\"", "data_age_max = \"200 ms\"\n");
    let workload = Workload::from_text(&good, "f.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(workload.chains[0].path, [0, 1, 3]);
    assert_eq!(
        refuse(&chain("\"g/detect\", \"g/lidar\"", "reaction_time_max = \"0 ms\"\n")),
        [
            "f.toml:11:9: chain 0 \"c\" path[0]: begins at \"detect\", which tokens start; a chain begins where data is \
             sampled, at a node with a period",
            "f.toml:11:21: chain 0 \"c\" path[1]: follows \"detect\", but no edge leads from there to \"lidar\"; add it, \
             or write the nodes between",
            "f.toml:12:21: chain 0 \"c\": `reaction_time_max` is 0 ms; write at least 1 ns",
        ]
    );
    let errors = refuse(&chain("\"g/camera\"", ""));
    assert_eq!(
        errors,
        [
            "f.toml:11:8: chain 0 \"c\": `path` is shorter than two nodes; write where data is sampled, and where it is used"
        ]
    );
    let errors = refuse(&chain("\"g/camera\", \"camera\"", ""));
    assert!(errors[0].contains("names the unknown node \"camera\"; did you mean `g/camera`?"), "{errors:?}");
    let doubled = good.replace("latest = [", "latest = [\"camera -> detect\", ");
    let errors = refuse(&doubled);
    assert!(errors[0].contains("path[1]: 2 edges lead from \"camera\" to \"detect\""), "{errors:?}");
}
