//! No input panics, and every error that is reported can be printed and has a position in the text.

use laxity_model::Workload;
use proptest::prelude::*;

use crate::examples::{EXAMPLES, example};

fn read_both(text: &str) {
    for read in [Workload::from_toml, Workload::from_json] {
        match read(text, "f") {
            Ok(workload) => assert_eq!(workload.validate(), Ok(()), "what is read is valid"),
            Err(errors) => {
                assert!(!errors.to_string().is_empty());
                let lines = text.split('\n').count();
                for error in errors.errors() {
                    let position = error.position.expect("a text has positions");
                    assert!(position.line <= lines && position.line > 0 && position.column > 0, "{error:?}");
                }
                assert!(errors.errors().is_sorted_by_key(|error| error.position), "in file order: {errors}");
            }
        }
    }
}

/// An edit of a text: at a place, remove some characters and insert others.
pub fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let words = [
        "",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        ".",
        ",",
        "#",
        "0",
        "-1",
        "18446744073709551616",
        "null",
        "true",
        "1.5",
        "[[task]]\n",
        "body",
        "ms",
        "\u{b5}",
        "\"0 ms\"",
        "\"9999999999 h\"",
        "\"1 ns\"",
        "65536",
        "S-",
        "->",
    ];
    (any::<prop::sample::Index>(), 0usize..12, prop::sample::select(words.map(str::to_owned).to_vec()))
}

pub fn mutate(text: &str, edits: &[(prop::sample::Index, usize, String)]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for (place, removed, inserted) in edits {
        let at = place.index(characters.len() + 1);
        let end = (at + removed).min(characters.len());
        characters.splice(at..end, inserted.chars());
    }
    characters.into_iter().collect()
}

/// The lines of a text in another order, some missing, some twice.
fn shuffle(text: &str, order: &[prop::sample::Index]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    order.iter().map(|line| lines[line.index(lines.len())]).collect::<Vec<_>>().join("\n")
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,100}") {
        read_both(&String::from_utf8_lossy(&bytes));
        read_both(&text);
    }

    #[test]
    fn edited_examples_never_panic(
        which in 0..EXAMPLES.len(),
        edits in prop::collection::vec(edit(), 1..6),
    ) {
        let (file, text) = EXAMPLES[which];
        read_both(&mutate(text, &edits));
        read_both(&mutate(&example(file).to_json(), &edits));
    }

    #[test]
    fn shuffled_examples_never_panic(
        which in 0..EXAMPLES.len(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let (file, text) = EXAMPLES[which];
        read_both(&shuffle(text, &order));
        read_both(&shuffle(&example(file).to_json(), &order));
    }

    #[test]
    fn swapped_values_never_panic(seed: u64, swaps in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..8)) {
        let text = crate::generate::workload(seed, 3).to_toml();
        let mut lines: Vec<(&str, &str)> = text.lines().map(|line| line.split_once(" = ").unwrap_or((line, ""))).collect();
        for [from, to] in &swaps {
            let value = lines[from.index(lines.len())].1;
            let to = to.index(lines.len());
            if !lines[to].1.is_empty() && !value.is_empty() {
                lines[to].1 = value;
            }
        }
        let line = |(key, value): &(&str, &str)| match value.is_empty() {
            true => format!("{key}\n"),
            false => format!("{key} = {value}\n"),
        };
        read_both(&lines.iter().map(line).collect::<String>());
    }
}
