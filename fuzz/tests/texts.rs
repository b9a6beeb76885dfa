//! Texts that users write: workload files, measured overheads, and the small languages of options.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use laxity_fuzz::edit;
use laxity_model::{Distribution, Measurement, Nanos, Scheduler, Workload};

/// Reads `text`; if that works, what it is written as must read as the same value.
fn reads_back<T: FromStr + Display + PartialEq + std::fmt::Debug>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    let written = value.to_string();
    assert_eq!(written.parse::<T>().ok().as_ref(), Some(&value), "{text:?} is written as {written:?}");
}

fn workload(text: &str, read: fn(&str, &str) -> Result<Workload, laxity_model::WorkloadErrors>) {
    match read(text, "fuzzed") {
        Ok(workload) => {
            assert_eq!(workload.validate(), Ok(()), "what is read is valid");
            assert_eq!(Workload::from_toml(&workload.to_toml(), "again").as_ref(), Ok(&workload));
            assert_eq!(Workload::from_json(&workload.to_json(), "again").as_ref(), Ok(&workload));
        }
        Err(errors) => assert!(!errors.to_string().is_empty(), "an error says something"),
    }
}

#[test]
fn workload_toml() {
    bolero::check!().for_each(|input: &[u8]| workload(&String::from_utf8_lossy(input), Workload::from_toml));
}

/// Arbitrary bytes hardly ever are TOML; a file with a few bytes changed mostly still is.
#[test]
fn edited_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/workloads");
    let files = fs::read_dir(folder).expect("the examples are there").map(|entry| entry.expect("an entry").path());
    let examples: Vec<Vec<u8>> = files.map(|path| fs::read(path).expect("readable")).collect();
    assert!(examples.len() >= 10, "the examples were found");
    bolero::check!().for_each(|input: &[u8]| {
        let Some((&which, edits)) = input.split_first() else { return };
        let mut bytes = examples[usize::from(which) % examples.len()].clone();
        // Few edits, so that most of the file stays what it was.
        edit(&mut bytes, &edits[..edits.len().min(9)]);
        workload(&String::from_utf8_lossy(&bytes), Workload::from_toml);
    });
}

#[test]
fn workload_json() {
    bolero::check!().for_each(|input: &[u8]| workload(&String::from_utf8_lossy(input), Workload::from_json));
}

#[test]
fn measurement() {
    bolero::check!().for_each(|input: &[u8]| {
        if let Ok(measured) = Measurement::from_text(&String::from_utf8_lossy(input), "fuzzed") {
            assert_eq!(Measurement::from_text(&measured.to_toml(), "again").as_ref(), Ok(&measured));
        }
    });
}

#[test]
fn options() {
    bolero::check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        reads_back::<Nanos>(&text);
        reads_back::<Scheduler>(&text);
        let _ = text.parse::<Distribution>();
        let _ = laxity_model::parse_cpus(&text);
        let _ = laxity_model::parse_size(&text);
        let _ = text.parse::<laxity_gen::GeneratorSpec>();
        let _ = text.parse::<laxity_study::gedf::Options>();
        let _ = text.parse::<laxity_study::klmirqd::Options>();
        let _ = text.parse::<laxity_study::klmirqd_runtime::RuntimeOptions>();
    });
}
