//! Plain English: a sentence names its actor (the waiter, the holder, a process that ...).

use crate::{files, read, root};

/// Words that hide the actor.
const HEADLESS: &[&str] =
    &[concat!("no", "body"), concat!("some", "body"), concat!("wh", "oever"), concat!("wh", "om")];

/// This word stands only directly after people: threads, jobs and processes are a *that*.
const PERSONAL: &str = concat!("wh", "o");
const PEOPLE: &[&str] = &["users", "people", "readers", "authors", "developers", "researchers"];

/// A sentence about *what ...* does not name its subject.
const SUBJECT: &str = concat!("Wh", "at");

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

/// The lines of sentences of a paragraph that begin with a *what* as their subject; questions may.
///
/// The first sentence of a comment may: there it is the name of a thing, as in "What a check found."
fn subjects(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches(['/', '!', '#', '*']).trim();
        let starts = line.match_indices(SUBJECT).map(|(at, _)| (line[..at].trim_end(), &line[at + SUBJECT.len()..]));
        for (sentence_before, rest) in starts {
            let follows = if sentence_before.is_empty() { before } else { sentence_before };
            let is_word = rest.is_empty() || rest.starts_with(' ');
            let rest = rest.trim_start();
            let is_in_lower_case = is_word && (rest.is_empty() || rest.starts_with(char::is_lowercase));
            let end = rest.find(['.', '?', ';', ':']);
            let is_question = end.is_none_or(|end| rest[end..].starts_with('?'));
            let is_question = is_question && (end.is_some() || next_end(text, number) == Some('?'));
            if follows.ends_with('.') && is_in_lower_case && !is_question {
                found.push(number + 1);
            }
        }
        before = line;
    }
    found
}

/// How the sentence ends that goes on after line `number`.
fn next_end(text: &str, number: usize) -> Option<char> {
    text.lines().skip(number + 1).flat_map(str::chars).find(|letter| matches!(letter, '.' | '?' | ';' | ':'))
}

#[test]
fn sentences_name_their_actor() {
    let mut wrong = Vec::new();
    for path in files(&root(), &["rs", "py", "pyi", "c", "h", "hpp", "cpp", "md", "sh", "toml"]) {
        let relative = path.strip_prefix(root()).expect("below the root");
        let words = forbidden(&read(&path));
        wrong.extend(words.iter().map(|(line, word)| format!("{}:{line}: {word}", relative.display())));
        let lines = subjects(&read(&path));
        wrong.extend(lines.iter().map(|line| format!("{}:{line}: a sentence about a {SUBJECT}", relative.display())));
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

#[test]
fn a_sentence_within_a_paragraph_does_not_begin_with_its_clause() {
    let wrong = format!(
        "/// A thing. {SUBJECT} is done\n/// stays.\n\n/// {SUBJECT} a thing is.\n/// {SUBJECT} is left\n/// stays."
    );
    assert_eq!(subjects(&wrong), [1, 5]);
    assert_eq!(subjects(&format!("/// A thing. {SUBJECT} is\n/// it? That.\nlet x = 1;\n/// {SUBJECT} it is.")), []);
}
