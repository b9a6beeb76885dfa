//! The user's own code in workload files.

use laxity_model::{CodeSource, ErrorKind, OwnCode, Workload};

/// A workload with a task that has `run`.
fn task(run: &str) -> String {
    format!(
        "laxity = 1\nname = \"w\"\nplatform.cpus = 1\n[[task]]\nname = \"t\"\nperiod = \"9 ms\"\nwcet = \"1 ms\"\nrun = {run}\n"
    )
}

fn read(run: &str) -> OwnCode {
    let workload = Workload::from_toml(&task(run), "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let again = Workload::from_toml(&workload.to_toml(), "again.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(workload, again);
    let json = Workload::from_json(&workload.to_json(), "again.json").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(workload, json);
    workload.tasks[0].run.clone().expect("it has code")
}

#[test]
fn code_is_a_library_a_python_function_or_a_command_and_is_written_as_it_was_read() {
    let code = read(r#"{ library = "lib/f.so", symbol = "f", init = "i", exit = "e", warm = true }"#);
    let some = |text: &str| Some(text.to_owned());
    let source =
        CodeSource::Library { library: "lib/f.so".into(), symbol: "f".into(), init: some("i"), exit: some("e") };
    assert_eq!(code, OwnCode { source, warm: true });
    assert_eq!(read(r#"{ python = "a.b:f" }"#), OwnCode::new(CodeSource::Python { function: "a.b:f".into() }));
    let words = vec!["./x".to_owned(), "--once".to_owned()];
    assert_eq!(read(r#"{ command = ["./x", "--once"] }"#), OwnCode::new(CodeSource::Command(words)));
}

#[test]
fn what_is_wrong_with_code_is_found_with_its_field() {
    let wrong = |text: String| {
        let errors = Workload::from_toml(&text, "w.toml").expect_err("a mistake").into_vec();
        assert_eq!(errors.len(), 1, "{errors:?}");
        (errors[0].kind, errors[0].path.to_string(), errors[0].to_string())
    };
    let cases = [
        ("{ symbol = \"f\" }", ErrorKind::MissingField, "task[0].run", "does not say what to run"),
        ("{ library = \"l.so\" }", ErrorKind::MissingField, "task[0].run.symbol", "`symbol` is missing"),
        (
            "{ library = \"l.so\", python = \"a:b\" }",
            ErrorKind::Contradiction,
            "task[0].run",
            "both `library` and `python`",
        ),
        ("{ python = \"f\" }", ErrorKind::BadValue, "task[0].run.python", "module:function"),
        ("{ python = \"a:b c\" }", ErrorKind::BadValue, "task[0].run.python", "module:function"),
        ("{ command = [] }", ErrorKind::BadValue, "task[0].run.command", "names no program"),
        ("{ library = \"\", symbol = \"f\" }", ErrorKind::BadValue, "task[0].run.library", "is no name"),
        ("\"f\"", ErrorKind::WrongType, "task[0].run", "as in `{ library"),
        ("{ python = \"a:b\", init = \"c\" }", ErrorKind::UnknownField, "task[0].run.init", "unknown field `init`"),
    ];
    for (run, kind, path, words) in cases {
        let (found, at, message) = wrong(task(run));
        assert_eq!((found, at.as_str()), (kind, path), "{run}: {message}");
        assert!(message.contains(words), "{run}: {message}");
    }
    let with_body =
        task("{ command = [\"x\"] }").replace("wcet = \"1 ms\"", "body = [{ cpu = \"1 ms\" }, { suspend = \"1 ms\" }]");
    let (kind, path, message) = wrong(with_body);
    assert_eq!((kind, path.as_str()), (ErrorKind::Contradiction, "task[0].run.command"), "{message}");
}

#[test]
fn an_edge_says_how_long_its_messages_are() {
    let graph = |message: &str| {
        format!(
            "laxity = 1\nname = \"w\"\nplatform.cpus = 1\n[[graph]]\nname = \"g\"\nedge = [{{ from = \"a\", to = \"b\", \
             message = {message} }}]\nnode = [{{ name = \"a\", period = \"9 ms\", wcet = \"1 ms\" }}, {{ name = \"b\", wcet = \
             \"1 ms\" }}]\n"
        )
    };
    let workload = Workload::from_toml(&graph("\"64 kB\""), "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(workload.graphs[0].edges[0].message, 64_000);
    let error = Workload::from_toml(&graph("\"5 GB\""), "w.toml").expect_err("too long").to_string();
    assert!(error.contains("a message has at most 4294967295"), "{error}");
}

/// As the command says of a symbol that a library does not have.
#[test]
fn what_only_shows_where_code_runs_is_said_with_file_line_and_field() {
    let text = task("{ library = \"l.so\", symbol = \"f\" }");
    let workload = Workload::from_toml(&text, "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let error = laxity_model::WorkloadError::of_own_code(
        &workload,
        (&text, "w.toml", false),
        (0, "symbol"),
        "there is none".to_owned(),
    );
    assert_eq!(error.to_string(), "w.toml:8:36: task 0 \"t\" run: there is none");
}
