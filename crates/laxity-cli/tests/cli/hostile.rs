//! Nothing that a file, a name or another process brings reaches the terminal as an escape sequence.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use laxity_trace::Sink;
use laxity_trace::codec::{TraceWriter, read_all};

use crate::support::{example, folder, laxity, run, trace_of};

/// Sets a title, begins a sequence by one C1 character, reverses the order of letters, blinks, overwrites the line.
pub const HOSTILE: &str = "\u{1b}]0;title\u{7}\u{9b}5m\u{202e}\u{1b}[5mblink\rover";

/// What a name of a workload may hold, as control characters are refused there.
pub const REVERSED: &str = "a\u{202e}b";

/// The escape sequences of the command itself.
const OWN: [&str; 6] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];

/// The verbs that do something themselves, from the help of the command, so that new verbs are tested, too.
pub fn verbs(path: &[String]) -> Vec<Vec<String>> {
    let (_, help, _) = run(path.iter().map(String::as_str).chain(["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    if names.is_empty() {
        return vec![path.to_vec()];
    }
    // `laxity trace` takes the file before the verb.
    let file = (path == ["trace"]).then(|| "FILE".to_owned());
    let below = |name: &str| [path, file.as_slice(), &[name.to_owned()]].concat();
    names.into_iter().flat_map(|name| verbs(&below(name))).collect()
}

/// Fails if `text` holds anything that a terminal obeys, apart from the command's own colours.
pub fn assert_harmless(text: &str, words: &[String]) {
    let text = OWN.iter().fold(text.replace("\u{1b}[36m", ""), |text, own| text.replace(own, ""));
    let found = text.chars().find(|&letter| {
        let is_reversing = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        is_reversing || (letter.is_control() && !matches!(letter, '\n' | '\t'))
    });
    assert_eq!(found, None, "laxity {words:?} printed {text:?}");
}

/// Fails if the command, in `folder`, prints anything that a terminal obeys. Answers what it prints, for people and for
/// programs together.
pub fn assert_harmless_run(words: &[String], folder: &Path) -> String {
    let mut command = laxity();
    command.args(["--color", "always"]).args(words).current_dir(folder).timeout(Duration::from_secs(60));
    let printed = command.output().expect("it ends by itself");
    let texts = [printed.stdout, printed.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    texts.iter().for_each(|text| assert_harmless(text, words));
    texts.concat()
}

/// Files whose names and contents are hostile.
pub fn files(folder: &Path) -> Vec<String> {
    let quickstart = fs::read_to_string(example("quickstart.toml")).expect("it is there");
    let path = |end: &str| folder.join(format!("{HOSTILE}{end}"));
    let escaped: String = HOSTILE.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    let renamed = quickstart.replace("\"camera\"", &format!("\"{REVERSED}\""));
    assert_ne!(renamed, quickstart);
    fs::write(path("valid.toml"), renamed).expect("a file");
    fs::write(path("names.toml"), quickstart.replace("\"camera\"", &format!("\"{escaped}\""))).expect("a file");
    fs::write(path("broken.toml"), format!("laxity = 1\n{HOSTILE}")).expect("a file");
    fs::write(path("keys.json"), format!("{{\"laxity\": 1, \"{escaped}\": 2}}")).expect("a file");
    write_trace(&path("trace.lxt"));
    let files = ["valid.toml", "names.toml", "broken.toml", "keys.json", "trace.lxt", "none"].map(path);
    files.iter().map(|path| path.to_str().expect("UTF-8").to_owned()).collect()
}

/// A trace with a hostile name wherever a trace has one.
fn write_trace(path: &Path) {
    let folder = folder();
    let original = trace_of("gpu.toml", "100 ms", &folder);
    let (mut header, records) =
        read_all(File::open(original).expect("a file")).expect("it is whole").whole().expect("too");
    let names = header.tasks.iter_mut().map(|task| &mut task.name);
    let names = names.chain(header.gpus.iter_mut().map(|gpu| &mut gpu.name));
    let names = names.chain(header.locks.iter_mut().map(|lock| &mut lock.name));
    names.chain([&mut header.workload, &mut header.arbitration]).for_each(|name| name.push_str(HOSTILE));
    let mut writer = TraceWriter::new(File::create(path).expect("a file"), &header).expect("a header");
    records.iter().for_each(|record| writer.record(record.at, record.event));
    writer.finish().expect("written");
}

/// What is tried of any verb: each file in its place, a hostile name and a hostile option.
fn trials(verb: &[String], files: &[String]) -> Vec<Vec<String>> {
    let words = |more: &[&str]| verb.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect();
    if verb[0] == "trace" {
        let of = |file: &String| -> Vec<String> {
            verb.iter().map(|word| if word == "FILE" { file.clone() } else { word.clone() }).collect()
        };
        return files.iter().flat_map(|file| [of(file), [of(file), vec![HOSTILE.to_owned()]].concat()]).collect();
    }
    let mut trials: Vec<Vec<String>> = files.iter().map(|file| words(&[file])).collect();
    trials.extend([words(&[HOSTILE]), words(&[REVERSED]), words(&[&format!("--{HOSTILE}")])]);
    for trial in &mut trials {
        match verb.join(" ").as_str() {
            "simulate" => trial.extend(["--for", "50ms"].map(str::to_owned)),
            "check" => trial.extend(["--no-scaling", "--explain"].map(str::to_owned)),
            "run" => trial.extend(["--for", "20ms", "--scheduler", "other"].map(str::to_owned)),
            "graph run" => trial.extend(["--for", "20ms"].map(str::to_owned)),
            _ => {}
        }
    }
    trials
}

#[test]
fn no_verb_prints_what_a_terminal_would_obey() {
    let folder = folder();
    let files = files(folder.path());
    let verbs = verbs(&[]);
    assert!(verbs.len() >= 20 && verbs.contains(&vec!["validate".to_owned()]), "{verbs:?}");
    for verb in verbs {
        for words in trials(&verb, &files) {
            assert_harmless_run(&words, folder.path());
        }
    }
}
