//! Servers that tasks are: `budget`, `server`.

use laxity_model::{Nanos, ServerKind, Task, TaskServer, Workload};

const HEAD: &str = "laxity = 1\nname = \"w\"\n[platform]\ncpus = 1\n[[task]]\nname = \"t\"\nperiod = \"100 ms\"\n\
                    deadline = \"90 ms\"\nwcet = \"9 ms\"\n";

fn read(fields: &str) -> Result<Task, String> {
    let text = format!("{HEAD}{fields}");
    let workload = Workload::from_toml(&text, "f.toml").map_err(|errors| errors.to_string())?;
    let again = Workload::from_toml(&workload.to_toml(), "f.toml").expect("what is written can be read");
    assert_eq!(again, workload);
    Ok(workload.tasks[0].clone())
}

#[test]
fn a_budget_is_short_for_a_hard_server_of_the_tasks_period() {
    let ms = Nanos::from_millis;
    let server = |kind, period| Some(TaskServer { kind, budget: ms(2), period });
    assert_eq!(read("").map(|task| task.server), Ok(None));
    let short = read("budget = \"2 ms\"").expect("a budget");
    let long = read("server = { kind = \"cbs_hard\", budget = \"2 ms\" }").expect("a server");
    assert_eq!((short.server, short.ranked_by()), (server(ServerKind::CbsHard, None), (ms(100), ms(90))));
    assert_eq!(long, short);
    for kind in [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic] {
        let name = kind.name();
        let task = read(&format!("server = {{ kind = \"{name}\", budget = \"2 ms\", period = \"10 ms\" }}"));
        let task = task.expect("a server with a period of its own");
        assert_eq!((task.server, task.ranked_by()), (server(kind, Some(ms(10))), (ms(10), ms(10))));
    }
}

#[test]
fn mistakes_in_a_server_are_told_with_their_places_and_ways_out() {
    assert_eq!(
        read("server = { kind = \"cbs\", period = \"10 ms\", prioritie = 1 }").expect_err("three mistakes"),
        "f.toml:10:10: task 0 \"t\" server: `budget` is missing; write `budget = \"1 ms\"`\n\
         f.toml:10:19: task 0 \"t\" server: `kind` is the unknown word \"cbs\"; write one of `cbs_hard`, `cbs_soft`, \
         `sporadic`\n\
         f.toml:10:44: task 0 \"t\" server: unknown field `prioritie`; write one of `kind`, `budget`, `period`"
    );
    assert_eq!(
        read("budget = \"2 ms\"\nserver = { kind = \"sporadic\", budget = \"2 ms\" }").expect_err("two servers"),
        "f.toml:10:10: task 0 \"t\": `budget` is the short form of a `server` of kind \"cbs_hard\"; write one of them"
    );
    assert_eq!(
        read("server = { kind = \"sporadic\", budget = \"20 ms\", period = \"10 ms\" }").expect_err("too much"),
        "f.toml:10:40: task 0 \"t\" server: `budget` 20 ms exceeds the server's period 10 ms; a job cannot execute for \
         longer than that on one CPU, so lower it or extend the period"
    );
}
