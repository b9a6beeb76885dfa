//! What the environment says of the soft devices.

use std::env;
use std::path::PathBuf;

use laxity_model::{Nanos, parse_size};
use laxity_softgpu::Config;

/// The variables.
const DEVICES: &str = "LAXITY_SOFTCUDA_DEVICES";
const NAME: &str = "LAXITY_SOFTCUDA_NAME";
const MEMORY: &str = "LAXITY_SOFTCUDA_MEMORY";
const COPY_ENGINES: &str = "LAXITY_SOFTCUDA_COPY_ENGINES";
const COPY_RATE: &str = "LAXITY_SOFTCUDA_COPY_RATE";
const KERNELS: &str = "LAXITY_SOFTCUDA_KERNELS";
const TIMES: &str = "LAXITY_SOFTCUDA_TIMES";

/// The most devices.
const DEVICES_MAX: usize = 16;

/// How many soft GPUs there are, what they are like, and which kernels they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub devices: usize,
    /// Device N is the soft GPU of this name with N behind it.
    pub name: String,
    pub config: Config,
    /// Libraries with kernels.
    pub kernels: Vec<PathBuf>,
    /// How long kernels take at least, by name; `*` stands for those that have no entry.
    pub times: Vec<(String, Nanos)>,
}

impl Settings {
    /// Those of the environment. An error names the variable, its value and what can be.
    pub fn of_environment() -> Result<Settings, String> {
        Settings::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        fn parse<T>(name: &str, text: Option<String>, what: &str, parse: impl Fn(&str) -> Option<T>) -> Parsed<T> {
            let Some(text) = text else { return Ok(None) };
            parse(&text).map(Some).ok_or_else(|| format!("{name}={text:?} is not {what}"))
        }
        type Parsed<T> = Result<Option<T>, String>;
        let get = |name| parse(name, variable(name), "a size such as 64 MiB", |text| parse_size(text).ok());
        let devices = parse(DEVICES, variable(DEVICES), "a number from 0 to 16", |text| {
            text.parse().ok().filter(|number| *number <= DEVICES_MAX)
        })?;
        let engines = parse(COPY_ENGINES, variable(COPY_ENGINES), "1 or 2", |text| {
            text.parse().ok().filter(|engines| (1..=2).contains(engines))
        })?;
        let times = parse(TIMES, variable(TIMES), "names with times, such as scale=200us,*=1ms", |text| {
            let entry = |entry: &str| {
                let (name, time) = entry.split_once('=')?;
                Some((name.trim().to_owned(), time.trim().parse().ok()?))
            };
            text.split(',').filter(|entry| !entry.trim().is_empty()).map(entry).collect()
        })?;
        let config = Config {
            copy_engines: engines.unwrap_or(2),
            memory: get(MEMORY)?.unwrap_or(256 << 20),
            copy_rate: get(COPY_RATE)?,
            ..Config::default()
        };
        config.check().map_err(|error| error.to_string())?;
        let kernels = variable(KERNELS).unwrap_or_default();
        Ok(Settings {
            devices: devices.unwrap_or(1),
            name: variable(NAME).unwrap_or_else(|| "cuda".to_owned()),
            config,
            kernels: kernels.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
            times: times.unwrap_or_default(),
        })
    }

    /// How long a kernel of that name takes at least, if anything says so.
    pub fn time(&self, kernel: &str) -> Option<Nanos> {
        let of = |wanted: &str| self.times.iter().find(|(name, _)| name == wanted).map(|(_, time)| *time);
        of(kernel).or_else(|| of("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_own_time_counts_more_than_that_of_all() {
        let read = |text: &'static str| Settings::read(move |name| (name == TIMES).then(|| text.to_owned()));
        let settings = read("scale=200us, *=1ms").expect("right");
        assert_eq!(settings.time("scale"), Some(Nanos::from_micros(200)));
        assert_eq!(settings.time("other"), Some(Nanos::from_millis(1)));
        assert_eq!(read("").expect("right").time("scale"), None);
        let error = read("scale").expect_err("no time");
        assert!(error.starts_with("LAXITY_SOFTCUDA_TIMES=\"scale\" is not names with times"), "{error}");
    }
}
