//! Plain English: a sentence names its actor (the waiter, the holder, a process that ...).

use crate::{files, read, root};

/// Words that hide the actor.
const HEADLESS: &[&str] =
    &[concat!("no", "body"), concat!("some", "body"), concat!("wh", "oever"), concat!("wh", "om")];

/// This word stands only directly after people: threads, jobs and processes are a *that*.
const PERSONAL: &str = concat!("wh", "o");
const PEOPLE: &[&str] = &["users", "people", "readers", "authors", "developers", "researchers"];

/// The words of `text` that the rule forbids, each with its line. Words end where letters end, so that names of tests are
/// read, too, and a comment may break its line between a noun and its clause.
fn forbidden(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut before = String::new();
    for (number, line) in text.lines().enumerate() {
        for word in line.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let is_headless = HEADLESS.contains(&word.as_str());
            if is_headless || (word == PERSONAL && !PEOPLE.contains(&before.as_str())) {
                found.push((number + 1, word.clone()));
            }
            before = word;
        }
    }
    found
}

#[test]
fn sentences_name_their_actor() {
    let mut wrong = Vec::new();
    for path in files(&root(), &["rs", "py", "pyi", "c", "h", "hpp", "cpp", "md", "sh", "toml"]) {
        let relative = path.strip_prefix(root()).expect("below the root");
        let words = forbidden(&read(&path));
        wrong.extend(words.iter().map(|(line, word)| format!("{}:{line}: {word}", relative.display())));
    }
    assert!(wrong.is_empty(), "name the actor (the waiter, the holder, a process that ...):\n{}", wrong.join("\n"));
}

#[test]
fn names_of_tests_and_broken_lines_are_read_too() {
    let [no_body, personal] = [HEADLESS[0], PERSONAL];
    assert_eq!(forbidden(&format!("fn a_lock_{no_body}_holds() {{}}")), [(1, no_body.to_owned())]);
    assert_eq!(forbidden(&format!("// for users\n// {personal} wait")), []);
    assert_eq!(forbidden(&format!("// a job\n// {personal} waits")), [(2, personal.to_owned())]);
    assert_eq!(forbidden("// the whole of it"), []);
}
