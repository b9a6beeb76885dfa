//! What each verb is given to do its work on hostile names: those in files, of files, of programs and in shared memory.
//!
//! The list of verbs is the command's own: a verb without a case fails the test.

use std::collections::BTreeSet;
use std::fs;

use laxity_testing::Directory;

use crate::hostile::{HOSTILE, REVERSED, assert_harmless, assert_harmless_run, files, verbs};
use crate::hostile_places::Places;
use crate::support::{example, folder, laxity};

/// By verb, the words that follow it. What `export` writes to a pipe is data, not text, and is not among them. Capitals stand for names and files: see [`Words`]. The first case of each passes the
/// parser.
const CASES: &[(&str, &[&str])] = &[
    ("simulate", &["VALID --for 50ms --trace OUT.lxt", "NAMES --for 50ms"]),
    ("run", &["VALID --for 20ms --scheduler other --trace OUT.lxt"]),
    ("check", &["VALID --no-scaling --explain", "VALID --overheads HOSTILE"]),
    ("trace FILE info", &[""]),
    ("trace FILE metrics", &["", "--json"]),
    ("trace FILE check", &[""]),
    ("trace FILE gantt", &["", "--svg OUT.svg"]),
    ("trace FILE why", &["", "HOSTILE", "--worst"]),
    ("trace FILE export", &["-o OUT.csv", "-o OUT.HOSTILE"]),
    ("report", &["VALID --no-run --for 50ms -o OUT.html", "TRACE -o OUT.html"]),
    ("tune", &["VALID --within 1ms --for 50ms -o OUT.toml"]),
    ("gen", &["uni-light/moderate cap=1 -o OUT.toml", "HOSTILE/moderate", "uni-light/moderate HOSTILE=1"]),
    ("validate", &["VALID NAMES BROKEN KEYS NONE"]),
    ("schema", &[""]),
    ("policies", &[""]),
    ("measure", &["--for 1ns --out OUT.toml", "--cpus HOSTILE"]),
    ("overheads", &["PROFILE", "HOSTILE"]),
    ("gpu create", &["a --gpus 1 --folder MEMORY", "HOSTILE --gpus 1 --folder NONE"]),
    ("gpu list", &["--folder MEMORY", "--json --folder MEMORY"]),
    ("gpu top", &["a --once --folder MEMORY", "a --once --json --folder MEMORY", "--once --folder MEMORY"]),
    (
        "gpu exec",
        &[
            "--layer VALID --optional --folder MEMORY -- HOSTILE",
            "--layer VALID --name HOSTILE --folder MEMORY -- true",
            "--layer HOSTILE -- true",
            "--layer VALID --policies BROKEN --folder MEMORY -- true",
            "--layer VALID --folder MEMORY -- OUT.sh",
        ],
    ),
    ("gpu irq", &["--root ROOT", "--json --root ROOT"]),
    ("gpu trace", &["LOG -o OUT.lxt", "HOSTILE -o OUT.lxt"]),
    ("gpu gc", &["--folder MEMORY"]),
    ("bandwidth status", &["--folder MEMORY", "a --folder MEMORY", "a --json --folder MEMORY"]),
    ("bandwidth top", &["a --once --folder MEMORY", "a --once --json --folder MEMORY", "--once --folder MEMORY"]),
    (
        "bandwidth lock",
        &["a --budget 1MB/s --folder MEMORY -- HOSTILE", "HOSTILE --budget 1MB/s --folder MEMORY -- true"],
    ),
    (
        "bandwidth regulate",
        &[
            "a --cpus 0 --counter software --folder MEMORY -- HOSTILE",
            "HOSTILE --cpus 0 --counter software --folder NONE -- true",
        ],
    ),
    ("bandwidth threshold", &["--repeat 1 --folder MEMORY -- HOSTILE"]),
    ("bandwidth hog", &["--for 1ms --name a --folder MEMORY", "--for 1ms --name HOSTILE --folder MEMORY"]),
    (
        "graph run",
        &[
            "PIPELINE --for 20ms --folder MEMORY --trace OUT.lxt",
            "-g A:HOSTILE --for 20ms --folder MEMORY",
            "-g A:REVERSED --for 20ms --name REVERSED --folder MEMORY",
        ],
    ),
    ("graph list", &["--folder MEMORY", "--json --folder MEMORY"]),
    ("graph watch", &["g --once --folder MEMORY", "g --once --json --folder MEMORY"]),
    ("graph record", &["g OUT.lxt --for 1ms --folder MEMORY", "HOSTILE OUT.lxt --for 1ms --folder MEMORY"]),
    ("graph show", &["g --folder MEMORY", "g --dot --folder MEMORY", "g --svg --folder MEMORY"]),
    ("graph terminate", &["g --now --folder MEMORY", "g --node HOSTILE --folder MEMORY"]),
    ("graph gc", &["--folder MEMORY"]),
    ("sched list", &["--folder MEMORY", "--json --folder MEMORY"]),
    ("sched top", &["s --once --folder MEMORY", "s --once --json --folder MEMORY", "--once --folder MEMORY"]),
    ("sched gc", &["--folder MEMORY"]),
    ("sched doctor", &["", "HOSTILE"]),
    // None that would load or end a scheduler of the machine that runs the tests.
    ("sched start", &["--policy HOSTILE", "--realization HOSTILE", "--cpus HOSTILE"]),
    ("sched irq", &["", "HOSTILE", "0000:HOSTILE"]),
    ("sched measure", &["--realization HOSTILE --out OUT", "--tasks HOSTILE", "--label HOSTILE --tasks 0 --out OUT"]),
    ("sched status", &["", "--json", "HOSTILE"]),
    ("sched stop", &["HOSTILE"]),
    (
        "exec",
        &[
            "--system s --period 10ms --wcet 1ms --folder MEMORY -- HOSTILE",
            "--system HOSTILE --period 10ms --wcet 1ms --folder NONE -- true",
            "--system s --period 10ms --wcet 1ms --task HOSTILE --folder MEMORY -- HOSTILE",
        ],
    ),
    ("completions", &["bash", "HOSTILE"]),
];

/// What the capitals of the cases stand for.
struct Words {
    /// Each a part of a word.
    meanings: Vec<(&'static str, String)>,
    trace: String,
}

impl Words {
    fn of(&self, verb: &[String], case: &str) -> Vec<String> {
        let verb = verb.iter().map(|word| if word == "FILE" { self.trace.clone() } else { word.clone() });
        let mean = |word: &str| self.meanings.iter().fold(word.to_owned(), |word, (name, it)| word.replace(name, it));
        verb.chain(case.split_whitespace().map(mean)).collect()
    }
}

#[test]
fn each_verb_does_its_work_on_hostile_names_and_prints_none_that_a_terminal_would_obey() {
    let (folder, places) = (folder(), Places::new());
    let [valid, names, broken, keys, trace, none] = files(folder.path()).try_into().expect("six files");
    let path = |name: &str| folder.path().join(format!("{HOSTILE}{name}")).to_str().expect("UTF-8").to_owned();
    let (pipeline, profile, script) = (path("pipeline.toml"), path("profile.toml"), path("out.sh"));
    let text = fs::read_to_string(example("pipeline.toml")).expect("it is there");
    fs::write(&pipeline, text.replace("\"rates\"", &format!("\"{REVERSED}\""))).expect("a file");
    let text =
        "laxity = 1\n[machine]\ncpus = [0]\n[worst]\nname = \"NAME\"\nrelease = \"7 us\"\n[average]\nname = \"a\"\n";
    fs::write(&profile, text.replace("NAME", REVERSED)).expect("a file");
    fs::write(&script, "#!/bin/sh\nexit 3\n").expect("a file");
    let path_of = |directory: &Directory| directory.path().to_str().expect("UTF-8").to_owned();
    let meanings = vec![
        ("PIPELINE", pipeline),
        ("PROFILE", profile),
        ("VALID", valid),
        ("NAMES", names),
        ("BROKEN", broken),
        ("KEYS", keys),
        ("TRACE", trace.clone()),
        ("NONE", none),
        ("OUT", path("out")),
        ("MEMORY", path_of(&places.memory)),
        ("ROOT", path_of(&places.root)),
        ("LOG", path_of(&places.log)),
        ("HOSTILE", HOSTILE.to_owned()),
        ("REVERSED", REVERSED.to_owned()),
    ];
    let words = Words { meanings, trace };
    let verbs = verbs(&[]);
    let known: BTreeSet<&str> = CASES.iter().map(|(verb, _)| *verb).collect();
    let unknown: Vec<String> =
        verbs.iter().map(|verb| verb.join(" ")).filter(|verb| !known.contains(&**verb)).collect();
    assert_eq!(unknown, Vec::<String>::new(), "verbs without a case: give each words that have it print hostile names");
    assert_eq!(verbs.len(), CASES.len(), "cases of verbs that are not there");
    let mut shown = 0;
    for verb in verbs {
        let (_, cases) = CASES.iter().find(|(name, _)| *name == verb.join(" ")).expect("each has one");
        for (number, case) in cases.iter().enumerate() {
            let words = words.of(&verb, case);
            let printed = assert_harmless_run(&words, folder.path());
            // If it were, it would end the scheduler of the machine that runs the tests.
            let is_meant = number == 0 && verb.join(" ") != "sched stop";
            assert!(!(is_meant && printed.contains("Usage:")), "laxity {words:?} is not understood: {printed}");
            shown += usize::from(printed.contains("blink") || printed.contains("\\u202e"));
        }
    }
    // Not in the help: a process of `graph run`.
    assert_harmless_run(&words.of(&["graph".to_owned(), "member".to_owned()], "HOSTILE"), folder.path());
    assert!(shown >= 45, "hostile names are shown, but for what a terminal would obey: {shown} times");
}

/// Text that a page or a picture shows.
fn assert_harmless_page(page: &str, words: &[String]) {
    assert_harmless(page, words);
    for marker in ["<b>", "'\"><", "<script"] {
        assert!(!page.contains(marker), "{marker} is markup in the page of {words:?}");
    }
}

/// The pictures of a page are in it, encoded.
fn decoded(page: &str) -> String {
    let mut parts = page.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => bytes.extend([&[code], &part.as_bytes()[2..]].concat()),
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn no_name_becomes_markup_or_an_escape_sequence_in_a_page_or_a_picture() {
    const MARKUP: &str = "x<b>'\"><script onload=y>&amp;";
    let folder = folder();
    let files = files(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let text = fs::read_to_string(&files[0]).expect("just written");
    let name = format!("{MARKUP}{REVERSED}").replace('"', "\\\"");
    let text = text.replace(REVERSED, &name).replace("\"quickstart\"", &format!("\"{name}\""));
    // No slash can be in the name of a file.
    let (workload, trace) = (path(&format!("{MARKUP}{HOSTILE}.toml")), path(&format!("{MARKUP}{HOSTILE}.lxt")));
    fs::write(&workload, text).expect("a file");
    laxity().args(["simulate", "--quiet", "--for", "100ms", "--trace", &trace, &workload]).assert().success();
    let (page, svg) = (path("page.html"), path("picture.svg"));
    let cases: [&[&str]; 4] = [
        &["report", &workload, "--no-run", "--for", "100ms", "-o", &page],
        &["report", &trace, &files[4], "-o", &page],
        &["trace", &trace, "gantt", "--svg", &svg],
        &["trace", &files[4], "gantt", "--svg", &svg],
    ];
    for words in cases {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        laxity().args(&words).assert().success();
        let written = fs::read_to_string(if words[0] == "report" { &page } else { &svg }).expect("written");
        assert!(written.contains("blink") || written.contains("202e"), "{words:?}: the name is shown");
        // A picture's own text is not encoded: names in it are.
        assert_harmless_page(&written, &words);
        assert_harmless(&decoded(&written), &words);
        assert!(!decoded(&written).contains("<b>"), "{words:?}: markup in a picture");
    }
}
