//! What a program is told by its environment, or by a file of policies: which arbitration it is under, and how.

use std::path::{Path, PathBuf};

use laxity_gpu::Base;
use laxity_model::{Instant, Nanos, parse_rate, parse_size};
use laxity_policy::program::{EngineUse, JobRule, Policy, TokenRule};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The prefix of environment variables: `LAXITY_GPU_PRIORITY` sets `priority`.
pub const PREFIX: &str = "LAXITY_GPU_";

/// The settings of a file of policies and of the environment, and what each says.
pub const KEYS: &[(&str, &str)] = &[
    ("arbitration", "the name of the arbitration; without it the program is not arbitrated"),
    ("folder", "where arbitrations have their names"),
    ("policies", "a TOML file with the settings of programs"),
    ("log", "a folder for the logs that `laxity gpu trace` reads"),
    ("report", "a folder where the interposer says that it is there"),
    ("gpu", "the GPU of the arbitration that the program uses"),
    ("priority", "1 to 99, deadline, or background"),
    ("job", "sync, announced, or a period such as 33 ms"),
    ("token", "hold, or job: how long a token is kept"),
    ("engines", "auto, one, or separate"),
    ("chunk", "copies are broken into chunks of this size; none: they are not"),
    ("batch", "the most operations of one hold of an engine"),
    ("batch_length", "how long operations of one hold may take together"),
    ("alone_length", "as batch_length, while the program is the only client; 0 ms: no different then"),
    ("hold_limit", "an engine is unlocked after this time, complete or not; not while the program is stopped"),
    ("wait", "driver, or suspend: how threads wait for their own operations"),
    ("bandwidth", "a rate such as 64 MB/s: what best-effort CPUs may have while the program uses an engine; none"),
    ("calls", "return, or block: whether a call waits until its operation is granted"),
];

/// Under which arbitration a program is, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of the arbitration; `None`: it is under none.
    pub arbitration: Option<String>,
    /// Where arbitrations have their names.
    pub folder: PathBuf,
    /// Where logs are written, if they are.
    pub log: Option<PathBuf>,
    /// Where interposers report.
    pub report: Option<PathBuf>,
    /// The GPU of the arbitration that the program uses.
    pub gpu: u16,
    /// How urgent its requests are.
    pub priority: Priority,
    /// Which operations occupy which engine; `None`: as the driver describes the device.
    pub engines: Option<EngineUse>,
    /// Copies are broken into chunks of so many bytes; `None`: as the arbitration is configured.
    pub chunk: Option<Option<u64>>,
    /// How threads wait for their own operations.
    pub wait: Wait,
    /// Whether a call waits until its operation is granted.
    pub calls: Calls,
    /// What each regulated CPU may have while the program uses an engine, in bytes a second: it holds the bandwidth lock
    /// meanwhile. `None`: it does not.
    pub bandwidth: Option<u64>,
    /// The rest. Its engines are those of [`Settings::engines`] once the device is known.
    pub policy: Policy,
}

/// How urgent the requests of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Always the same.
    Fixed(u8),
    /// By the deadlines of its jobs; less urgent than any fixed priority.
    Deadline,
    /// Less urgent than any other.
    Background,
}

/// How a thread waits for its own operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As the driver does it: some spin.
    Driver,
    /// Suspended (paper 003, section 5.4.2), until the driver's callback says that they are complete.
    Suspend,
}

/// What a call does whose operation is not granted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// It returns, and the operation is held back.
    Return,
    /// It waits for the grant, if the operation waits for nothing else: without gates, and a little cheaper. A thread
    /// that is to do something for another one meanwhile cannot.
    Block,
}

/// Why settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A key that there is not.
    #[error("{place}: there is no setting {key}; write one of {}", keys())]
    Key {
        /// Where it stands.
        place: String,
        /// Which.
        key: String,
    },
    /// A value that cannot be.
    #[error("{place}: {key} = {value:?} is not {expected}")]
    Value {
        /// Where it stands.
        place: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What can be.
        expected: String,
    },
    /// The file of policies.
    #[error("{}: {reason}; write TOML with [default] and [program.NAME]", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

fn keys() -> String {
    KEYS.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ")
}

fn text_of(path: &Path) -> Result<String, SettingsError> {
    std::fs::read_to_string(path)
        .map_err(|error| SettingsError::File { path: path.to_owned(), reason: error.to_string() })
}

fn parse<'a>(text: &'a str, path: &Path) -> Result<Spanned<DeTable<'a>>, SettingsError> {
    DeTable::parse(text)
        .map_err(|error| SettingsError::File { path: path.to_owned(), reason: error.message().to_owned() })
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            arbitration: None,
            folder: PathBuf::from("/dev/shm"),
            log: None,
            report: None,
            gpu: 0,
            priority: Priority::Background,
            engines: None,
            chunk: None,
            wait: Wait::Driver,
            calls: Calls::Return,
            bandwidth: None,
            policy: Policy::default(),
        }
    }
}

impl Settings {
    /// Those of the program called `program` from `environment`. A file that the environment names counts less than the
    /// environment itself, and in the file what it says of all programs less than what it says of this one.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn read(
        program: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        let ours = |(name, value): (String, String)| Some((name.strip_prefix(PREFIX)?.to_lowercase(), value));
        let mut pairs: Vec<(String, String)> = environment.into_iter().filter_map(ours).collect();
        pairs.sort();
        if let Some((_, path)) = pairs.iter().find(|(key, _)| key == "policies") {
            settings.apply_file(Path::new(path), program)?;
        }
        for (key, value) in pairs {
            settings.set(&key, &value, &format!("{PREFIX}{}", key.to_uppercase()))?;
        }
        Ok(settings)
    }

    /// Those that a file of policies has for each program that it names, with its name, and last for all others, with none:
    /// a mistake for one of them is found before any starts.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn of_file(path: &Path) -> Result<Vec<(Option<String>, Settings)>, SettingsError> {
        let text = text_of(path)?;
        let parsed = parse(&text, path)?;
        let programs = parsed.get_ref().get("program").and_then(|programs| programs.get_ref().as_table());
        let names = programs.into_iter().flatten().map(|(name, _)| Some(name.get_ref().to_string()));
        names
            .chain([None])
            .map(|name| {
                let mut settings = Settings::default();
                settings.apply(&parsed, path, name.as_deref())?;
                Ok((name, settings))
            })
            .collect()
    }

    fn apply_file(&mut self, path: &Path, program: &str) -> Result<(), SettingsError> {
        let text = text_of(path)?;
        self.apply(&parse(&text, path)?, path, Some(program))
    }

    fn apply(
        &mut self,
        parsed: &Spanned<DeTable<'_>>,
        path: &Path,
        program: Option<&str>,
    ) -> Result<(), SettingsError> {
        let wrong = |reason: String| SettingsError::File { path: path.to_owned(), reason };
        let file = parsed.get_ref();
        if let Some((key, _)) = file.iter().find(|(key, _)| !["default", "program"].contains(&key.get_ref().as_ref())) {
            return Err(wrong(format!("there is no [{}]", key.get_ref())));
        }
        if file.get("program").is_some_and(|programs| programs.get_ref().as_table().is_none()) {
            return Err(wrong("program is no table".to_owned()));
        }
        let programs = file.get("program").and_then(|programs| programs.get_ref().as_table());
        let tables = [file.get("default"), programs.zip(program).and_then(|(programs, name)| programs.get(name))];
        for table in tables.into_iter().flatten() {
            let table = table.get_ref().as_table().ok_or_else(|| wrong("a program has a table".to_owned()))?;
            for (key, value) in table {
                let value = match value.get_ref() {
                    DeValue::String(text) => text.as_ref(),
                    DeValue::Integer(number) => number.as_str(),
                    _ => return Err(wrong(format!("{} is neither text nor a number", key.get_ref()))),
                };
                self.set(key.get_ref(), value, &path.display().to_string())?;
            }
        }
        Ok(())
    }

    /// Sets what `key` says; `place` says where that stands.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn set(&mut self, key: &str, value: &str, place: &str) -> Result<(), SettingsError> {
        let wrong = |expected: &str| SettingsError::Value {
            place: place.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let span = |expected| value.parse::<Nanos>().map_err(|_| wrong(expected));
        match key {
            "arbitration" => self.arbitration = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "folder" => self.folder = value.into(),
            "policies" => {}
            "log" => self.log = Some(value.into()),
            "report" => self.report = Some(value.into()),
            "gpu" => self.gpu = value.parse().map_err(|_| wrong("the number of a GPU"))?,
            "priority" => {
                self.priority = match value {
                    "deadline" => Priority::Deadline,
                    "background" => Priority::Background,
                    number => match number.parse() {
                        Ok(priority @ 1..=99) => Priority::Fixed(priority),
                        _ => return Err(wrong("1 to 99, deadline, or background")),
                    },
                }
            }
            "job" => {
                self.policy.jobs = match value {
                    "sync" => JobRule::EverySync,
                    "announced" => JobRule::Announced,
                    _ => match span("sync, announced, or a period such as 33 ms")? {
                        Nanos::ZERO => return Err(wrong("a period above 0")),
                        period => JobRule::Period(period),
                    },
                }
            }
            "token" => {
                self.policy.token = match value {
                    "hold" => TokenRule::Hold,
                    "job" => TokenRule::Job,
                    _ => return Err(wrong("hold or job")),
                }
            }
            "engines" => {
                self.engines = match value {
                    "auto" => None,
                    "one" => Some(EngineUse::One),
                    "separate" => Some(EngineUse::Separate { copy_engines: 2 }),
                    _ => return Err(wrong("auto, one, or separate")),
                }
            }
            "chunk" => {
                self.chunk = Some(match value {
                    "none" => None,
                    size => Some(
                        parse_size(size)
                            .ok()
                            .filter(|&size| size > 0)
                            .ok_or_else(|| wrong("none, or a size such as 4 MiB"))?,
                    ),
                });
            }
            "batch" => {
                let number = value.parse().ok().filter(|&number| number >= 1);
                self.policy.batch = number.ok_or_else(|| wrong("a number from 1 on"))?;
            }
            "batch_length" => self.policy.batch_length = span("a time such as 200 us")?,
            "alone_length" => self.policy.alone_length = span("a time such as 10 ms")?,
            "hold_limit" => {
                let limit = value.parse().ok().filter(|&limit| limit > Nanos::ZERO);
                self.policy.hold_limit = limit.ok_or_else(|| wrong("a time such as 2 s"))?;
            }
            "wait" => {
                self.wait = match value {
                    "driver" => Wait::Driver,
                    "suspend" => Wait::Suspend,
                    _ => return Err(wrong("driver or suspend")),
                }
            }
            "bandwidth" => {
                self.bandwidth = match value {
                    "none" => None,
                    rate => {
                        let rate = parse_rate(rate).ok().filter(|&rate| rate > 0);
                        Some(rate.ok_or_else(|| wrong("none, or a rate such as 64 MB/s"))?)
                    }
                }
            }
            "calls" => {
                self.calls = match value {
                    "return" => Calls::Return,
                    "block" => Calls::Block,
                    _ => return Err(wrong("return or block")),
                }
            }
            _ => return Err(SettingsError::Key { place: place.to_owned(), key: key.to_owned() }),
        }
        Ok(())
    }

    /// As traces have it: the smaller the more urgent (`Priority` events of `laxity-trace`).
    pub fn level(&self, deadline: Option<Instant>) -> u64 {
        match self.base(deadline) {
            Base::Fixed(priority) => 100 - u64::from(priority),
            Base::Deadline(deadline) => deadline.0,
            Base::Background => u64::MAX,
        }
    }

    /// How urgent the requests of a job are that is due at that time, if it has a deadline.
    pub fn base(&self, deadline: Option<Instant>) -> Base {
        match self.priority {
            Priority::Fixed(priority) => Base::Fixed(priority),
            Priority::Deadline => deadline.map_or(Base::Background, Base::Deadline),
            Priority::Background => Base::Background,
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_testing::Directory;

    use super::*;

    fn read(program: &str, pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::read(program, pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn the_environment_counts_more_than_the_programs_table_and_that_more_than_the_default() {
        let place = Directory::new("policies");
        let path = place.path().join("policies.toml");
        let text = "[default]\npriority = 10\nbatch = 3\njob = \"33 ms\"\n[program.ffmpeg]\npriority = 20\nbatch = 4\n";
        std::fs::write(&path, text).expect("written");
        let file = path.to_str().expect("text");
        let pairs = [("LAXITY_GPU_POLICIES", file), ("LAXITY_GPU_BATCH", "5"), ("HOME", "elsewhere")];
        let settings = read("ffmpeg", &pairs).expect("right");
        assert_eq!((settings.priority, settings.policy.batch), (Priority::Fixed(20), 5));
        assert_eq!(settings.policy.jobs, JobRule::Period(Nanos::from_millis(33)));
        assert_eq!(read("other", &pairs[..1]).expect("right").priority, Priority::Fixed(10));
    }

    #[test]
    fn a_file_is_checked_for_all_of_its_programs() {
        let place = Directory::new("policies-all");
        let path = place.path().join("policies.toml");
        std::fs::write(&path, "[default]\npriority = 10\n[program.a]\ngpu = 5\n").expect("written");
        let all = Settings::of_file(&path).expect("right");
        assert_eq!(all.iter().map(|(name, _)| name.as_deref()).collect::<Vec<_>>(), [Some("a"), None]);
        assert_eq!(all.iter().map(|(_, settings)| settings.gpu).collect::<Vec<_>>(), [5, 0]);
        assert!(all.iter().all(|(_, settings)| settings.priority == Priority::Fixed(10)));
        for wrong in ["[program.\"cl.py\"]\nprioritty = 3\n", "program = 3\n", "[program]\na = 3\n", "[programs.a]\n"] {
            std::fs::write(&path, wrong).expect("written");
            Settings::of_file(&path).expect_err(wrong);
        }
    }

    #[test]
    fn a_wrong_setting_is_named_with_its_place_and_what_can_be() {
        let text = |key: &str, value: &str| read("p", &[(key, value)]).expect_err("wrong").to_string();
        assert_eq!(
            text("LAXITY_GPU_PRIORITY", "100"),
            "LAXITY_GPU_PRIORITY: priority = \"100\" is not 1 to 99, deadline, or background"
        );
        assert!(
            text("LAXITY_GPU_PRIORTY", "1").starts_with("LAXITY_GPU_PRIORTY: there is no setting priorty; write one")
        );
        for (key, value) in [
            ("BATCH", "0"),
            ("CHUNK", "0 MiB"),
            ("JOB", "often"),
            ("JOB", "0 ms"),
            ("HOLD_LIMIT", "0 ms"),
            ("TOKEN", "x"),
            ("BANDWIDTH", "0 B/s"),
        ] {
            assert!(read("p", &[(&format!("LAXITY_GPU_{key}"), value)]).is_err(), "{key} = {value}");
        }
    }

    #[test]
    fn every_documented_setting_is_known() {
        for (key, _) in KEYS {
            let result = Settings::default().set(key, "none", "here");
            assert!(!matches!(result, Err(SettingsError::Key { .. })), "{key}");
        }
    }
}
