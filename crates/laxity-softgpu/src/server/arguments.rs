//! The command line of the server: the name, then the numbers of its configuration.

use laxity_model::Nanos;

use crate::config::{Config, NAME_MAX};

/// The arguments with which the server is started.
pub fn write(name: &str, config: &Config) -> Vec<String> {
    let Config { copy_engines, memory, copy_rate, linger } = *config;
    let numbers = [copy_engines.into(), memory, copy_rate.unwrap_or(0), linger.0];
    [name.to_owned()].into_iter().chain(numbers.iter().map(u64::to_string)).collect()
}

/// The reverse of [`write()`].
///
/// # Errors
/// A sentence, if these are no such arguments.
pub fn read(arguments: impl Iterator<Item = String>) -> Result<(String, Config), String> {
    let arguments: Vec<String> = arguments.collect();
    understood(&arguments).ok_or_else(|| {
        let usage = "NAME COPY_ENGINES MEMORY_BYTES COPY_BYTES_PER_S LINGER_NS";
        format!("{} arguments were not understood; programs that open a soft GPU give {usage}", arguments.len())
    })
}

fn understood(arguments: &[String]) -> Option<(String, Config)> {
    let [name, copy_engines, memory, copy_rate, linger] = arguments else { return None };
    let copy_rate = Some(copy_rate.parse().ok()?).filter(|rate| *rate > 0);
    let (copy_engines, memory) = (copy_engines.parse().ok()?, memory.parse().ok()?);
    let config = Config { copy_engines, memory, copy_rate, linger: Nanos(linger.parse().ok()?) };
    let is_valid = config.check().is_ok() && !name.is_empty() && name.len() <= NAME_MAX;
    is_valid.then(|| (name.clone(), config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_arguments_are_read_and_others_are_refused() {
        let config = Config { copy_engines: 2, copy_rate: Some(5), ..Config::default() };
        for config in [config, Config::default()] {
            let written = write("gpu", &config);
            assert_eq!(read(written.iter().cloned()), Ok(("gpu".to_owned(), config)));
            assert!(read(written[..3].iter().cloned()).is_err());
        }
        assert!(read([].into_iter()).is_err());
        assert!(read(write("gpu", &Config { memory: 0, ..config }).into_iter()).is_err());
    }
}
