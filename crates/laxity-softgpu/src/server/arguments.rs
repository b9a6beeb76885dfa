//! The command line of the server: the name, then the numbers of its configuration.

use crate::config::{Config, NAME_MAX};

/// What a server is started with.
pub fn write(name: &str, config: &Config) -> Vec<String> {
    let numbers = config.to_words();
    [name.to_owned()].into_iter().chain(numbers.iter().map(u64::to_string)).collect()
}

/// What [`write()`] wrote.
///
/// # Errors
/// A sentence, if it did not.
pub fn read(arguments: impl Iterator<Item = String>) -> Result<(String, Config), String> {
    let arguments: Vec<String> = arguments.collect();
    let wrong = || {
        let usage = "NAME COPY_ENGINES MEMORY_BYTES COPY_BYTES_PER_S LINGER_NS";
        format!("{} arguments were not understood; programs that open a soft GPU give {usage}", arguments.len())
    };
    let [name, numbers @ ..] = &arguments[..] else { return Err(wrong()) };
    let numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let numbers = <[u64; 4]>::try_from(numbers).map_err(|_| wrong())?;
    let config = Config::from_words(numbers).ok_or_else(wrong)?;
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(wrong());
    }
    Ok((name.clone(), config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_is_refused() {
        let config = Config { copy_engines: 2, copy_rate: Some(5), ..Config::default() };
        let written = write("gpu", &config);
        assert_eq!(read(written.iter().cloned()), Ok(("gpu".to_owned(), config)));
        assert!(read(written[..3].iter().cloned()).is_err());
        assert!(read([].into_iter()).is_err());
    }
}
