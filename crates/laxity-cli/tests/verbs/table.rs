//! The table of `docs/reference/features.md`: every feature with every verb.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::features::{self, Feature};
use crate::verb::{self, Answer};

/// Set to write the page instead of comparing it.
const BLESS: &str = "LAXITY_BLESS";

const INTRODUCTION: &str = "\
# Features and verbs

What each verb of `laxity` does with each feature of a [workload file](workload-file.md). A test writes this page: it tries one
small workload for each feature with each verb, on two CPUs where the user may have real-time priorities. A number leads to
the reason, in the words of the tool.

- **check**: whether `laxity check` proves bounds for the small workload.
- **simulate**, **trace check**: `laxity simulate`, and whether `laxity trace FILE check` finds its schedule right.
- **run**, **trace check**: the same of a live run, by the scheduler that `laxity run` chooses. Quanta, and interrupts on a CPU of
  their own, are live where the scheduler in the kernel is loaded with them; without it `run` schedules by events on all CPUs (CEm),
  and a warning says so.
- **report**, **tune**: whether `laxity report` and `laxity tune` take it, with all their parts.
- **measure**: `laxity measure --nodes`, for tasks that name the user's code.

    LAXITY_BLESS=1 cargo test -p laxity-cli --test verbs      writes it again
";

/// The columns.
const VERBS: [&str; 8] = ["check", "simulate", "trace check", "run", "trace check", "report", "tune", "measure"];

/// Reasons, each with its number.
#[derive(Default)]
struct Reasons {
    list: Vec<String>,
}

impl Reasons {
    /// What a cell shows of `answer`.
    fn cell(&mut self, answer: &Answer) -> String {
        match answer {
            Answer::Done => "yes".to_owned(),
            Answer::NotApplicable => String::new(),
            Answer::Part(reasons) => format!("in part {}", self.numbers(reasons)),
            Answer::Refused(reasons) => format!("no {}", self.numbers(reasons)),
        }
    }

    fn numbers(&mut self, reasons: &[String]) -> String {
        let numbers: Vec<String> = reasons.iter().map(|reason| self.number(reason)).collect();
        numbers.join(" ")
    }

    fn number(&mut self, reason: &str) -> String {
        let at = self.list.iter().position(|known| known == reason).unwrap_or_else(|| {
            self.list.push(reason.to_owned());
            self.list.len() - 1
        });
        format!("[{0}](#r{0})", at + 1)
    }
}

/// Tries `feature` with every verb.
fn row(feature: &Feature, folder: &Path) -> [Answer; 8] {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let file = path("feature.toml");
    fs::write(&file, &feature.text).expect("a file");
    let (simulated, live) = (path("simulated.lxt"), path("live.lxt"));
    for trace in [&simulated, &live] {
        let _ = fs::remove_file(trace);
    }
    [
        verb::check(&file),
        verb::simulate(&file, &simulated),
        verb::trace_check(&simulated),
        verb::run(&file, &live),
        verb::trace_check(&live),
        verb::report(&file, &path("page.html")),
        verb::tune(&file),
        verb::measure(&file, &feature.text),
    ]
}

/// The page.
fn page() -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("features");
    fs::create_dir_all(&folder).expect("a folder");
    let (mut reasons, mut page, mut area) = (Reasons::default(), INTRODUCTION.to_owned(), "");
    for feature in features::all() {
        if feature.area != area {
            area = feature.area;
            page += &format!("\n## {area}\n\n| | {} |\n|{}\n", VERBS.join(" | "), " --- |".repeat(VERBS.len() + 1));
        }
        let answers = row(&feature, &folder);
        let cells: Vec<String> = answers.iter().map(|answer| reasons.cell(answer)).collect();
        page += &format!("| {} | {} |\n", feature.name, cells.join(" | "));
    }
    page += "\n## Reasons\n\n";
    for (number, reason) in reasons.list.iter().enumerate() {
        page += &format!("{0}. <a id=\"r{0}\"></a>{reason}\n", number + 1);
    }
    page
}

#[test]
fn the_page_of_features_says_what_every_verb_does_with_every_feature() {
    let (_alone, obstacle) = verb::obstacle();
    if let Some(reason) = obstacle {
        return laxity_testing::skip(reason);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/features.md");
    let page = page();
    if env::var_os(BLESS).is_some() {
        return fs::write(&file, page).expect("the page is written");
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let (mut new, mut old) = (page.lines(), committed.lines());
    loop {
        let (new, old) = (new.next(), old.next());
        assert_eq!(new, old, "docs/reference/features.md is not what the verbs do; write it again with {BLESS}=1");
        if new.is_none() {
            return;
        }
    }
}
