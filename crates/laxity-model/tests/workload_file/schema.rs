//! The published JSON Schema says the same as the reader, as far as a schema can.

use jsonschema::Validator;
use laxity_model::Workload;
use proptest::prelude::*;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::examples::EXAMPLES;
use crate::fuzz::{edit, mutate};
use crate::generate;

const SCHEMA: &str = include_str!("../../../../schema/laxity-workload-1.schema.json");

fn schema() -> Validator {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema follows its own schema");
    jsonschema::draft202012::new(&schema).expect("the schema compiles")
}

/// TOML as the JSON that schema-aware editors see.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Datetime(_) => Value::from(0.5),
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Array(elements) => elements.iter().map(|element| to_json(element.get_ref())).collect(),
        DeValue::Table(table) => table_to_json(table),
    }
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())));
    Value::Object(entries.collect::<Map<String, Value>>())
}

fn toml_to_json(text: &str) -> Option<Value> {
    DeTable::parse(text).ok().map(|table| table_to_json(table.get_ref()))
}

#[track_caller]
fn assert_valid(schema: &Validator, value: &Value) {
    if let Err(error) = schema.validate(value) {
        panic!("{}: {error}", error.instance_path());
    }
}

#[test]
fn every_example_follows_the_schema_in_both_formats() {
    let schema = schema();
    for (file, text) in EXAMPLES {
        assert_valid(&schema, &toml_to_json(text).expect(file));
        let workload = Workload::from_text(text, file).expect(file);
        assert_valid(&schema, &serde_json::from_str(&workload.to_json()).expect(file));
    }
}

/// Each is a mistake in one place of a file that is otherwise right.
#[test]
fn bad_files_are_refused_by_schema_and_reader_alike() {
    let schema = schema();
    let right = "laxity = 1\nname = \"w\"\nplatform = { cpus = 2 }\n[[task]]\nname = \"t\"\nperiod = \"9 ms\"\n";
    let task = |rest: &str| format!("{right}{rest}");
    assert_valid(&schema, &toml_to_json(&task("wcet = \"1 ms\"")).expect("TOML"));
    let bad = [
        right.replace("laxity = 1", "") + "wcet = \"1 ms\"",
        right.replace("laxity = 1", "laxity = 2") + "wcet = \"1 ms\"",
        right.replace("name = \"w\"", "name = \" \"") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 0") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 1025") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = \"2\"") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, cup = 1") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, clusters = [\"a\"]") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, overheads = { release = 5 }") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, overheads = { release = [[1]] }") + "wcet = \"1 ms\"",
        right.replace("[[task]]", "[task]") + "wcet = \"1 ms\"",
        format!("scheduler = \"EFD\"\n{}", task("wcet = \"1 ms\"")),
        format!("scheduler = {{ rule = \"edf\" }}\n{}", task("wcet = \"1 ms\"")),
        task(""),
        task("wcet = \"1\""),
        task("wcet = \"0 ms\""),
        task("wcet = \"1 msec\""),
        task("wcet = 1"),
        task("wcet = \"1 ms\"\nbody = [{ cpu = \"1 ms\" }]"),
        task("body = []"),
        task("body = [{ cpu = \"1 ms\" }]\nactual = \"1 ms\""),
        task("body = [{ cpu = \"1 ms\" }, { gpu = \"g\" }]"),
        task("body = [{ cpu = \"1 ms\", suspend = \"1 ms\" }]"),
        task("body = [{ cpu = \"1 ms\" }, { copy_in = \"1 B\", actual = \"1 ms\" }]"),
        task("wcet = \"1 ms\"\nactual = { uniform = [\"1 ms\"] }"),
        task("wcet = \"1 ms\"\nactual = { constant = \"1 ms\", uniform = [\"1 ms\", \"1 ms\"] }"),
        task("wcet = \"1 ms\"\nactual = { recorded = [] }"),
        task("wcet = \"1 ms\"\ngap = \"1 ms\""),
        task("wcet = \"1 ms\"\npriority = -1"),
        task("wcet = \"1 ms\"\nworking_set = \"2 mb\""),
        task("wcet = \"1 ms\"\n[[resource]]\nname = \"r\"\nprotocol = \"pip\""),
        task("wcet = \"1 ms\"\n[[best_effort]]\nname = \"b\"\nweight = 0"),
        task("wcet = \"1 ms\"\n[[graph]]\nname = \"g\""),
        task("wcet = \"1 ms\"\n[gpu_management]\narbitration = \"gpusink\""),
        task("wcet = \"1 ms\"\n[gpu_management]\narbitration = { protocol = \"k_fmlp\", tokens = 1 }"),
        task("wcet = \"1 ms\"\n[gpu_management]\narbitration = { protocol = \"gpusync\", tokens = 0 }"),
        task("wcet = \"1 ms\"\n[gpu_management]\nhandling = { method = \"klmirqd\", threads = 0 }"),
        task("wcet = \"1 ms\"\n[gpu_management]\nhandling = { method = \"pai\", threads = 1 }"),
        task("wcet = \"1 ms\"\n[gpu_management]\ntop_half = { actual = \"1 us\" }"),
        task("body = [{ cpu = \"1 ms\" }, { gpu_section = [] }]"),
        right.replace("cpus = 2", "cpus = 2, memory = { contention = [[\"0 B/s\", 1.0]] }") + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, memory = { contention = [[\"0 B/s\", 1.0], [\"1 B/s\", 0.5]] }")
            + "wcet = \"1 ms\"",
        right.replace("cpus = 2", "cpus = 2, memory = { regulator = { heed = \"soon\" } }") + "wcet = \"1 ms\"",
        format!("best_effort_scheduler = {{ rule = \"CFS\", punishment = 1 }}\n{}", task("wcet = \"1 ms\"")),
        format!("best_effort_scheduler = {{ punishment = 1 }}\n{}", task("wcet = \"1 ms\"")),
        task("wcet = \"1 ms\"\n[gpu_management]\nbandwidth_lock = {}"),
        task("wcet = \"1 ms\"\nmemory_budget = 5"),
        task("wcet = \"1 ms\"\nserver = { kind = \"cbs\", budget = \"1 ms\" }"),
        task("wcet = \"1 ms\"\nserver = { budget = \"1 ms\", period = \"2 ms\" }"),
        task("wcet = \"1 ms\"\nserver = { kind = \"cbs_soft\", budget = \"1 ms\", priority = 1 }"),
        task("wcet = \"1 ms\"\nbudget = \"1 ms\"\nserver = { kind = \"cbs_soft\", budget = \"1 ms\" }"),
        right.replace("cpus = 2", "cpus = 2, device = [{ name = \"d\" }]") + "wcet = \"1 ms\"",
        task(
            "wcet = \"1 ms\"\n[[graph]]\nname = \"g\"\nedge = [\"A\"]\n[[graph.node]]\nname = \"A\"\nperiod = \"9 ms\"\nwcet = \"1 ms\"",
        ),
    ];
    for text in bad {
        assert!(Workload::from_toml(&text, "f.toml").is_err(), "the reader takes:\n{text}");
        assert!(!schema.is_valid(&toml_to_json(&text).expect("TOML")), "the schema takes:\n{text}");
    }
}

proptest! {
    /// An editor that knows the schema must not complain about what Laxity reads.
    #[test]
    fn whatever_is_read_follows_the_schema(
        which in 0..EXAMPLES.len(),
        edits in prop::collection::vec(edit(), 1..3),
    ) {
        let text = mutate(EXAMPLES[which].1, &edits);
        if Workload::from_toml(&text, "f.toml").is_ok() {
            let value = toml_to_json(&text).expect("what is read is TOML");
            let schema = schema();
            prop_assert!(schema.is_valid(&value), "{:?} in:\n{text}", schema.validate(&value));
        }
    }

    #[test]
    fn whatever_is_written_follows_the_schema(seed: u64, size in 0u64..4) {
        let workload = generate::workload(seed, size);
        let json = serde_json::from_str(&workload.to_json()).expect("JSON");
        let toml = toml_to_json(&workload.to_toml()).expect("TOML");
        let schema = schema();
        prop_assert!(schema.is_valid(&json), "{:?}", schema.validate(&json));
        prop_assert!(schema.is_valid(&toml), "{:?}", schema.validate(&toml));
    }
}
