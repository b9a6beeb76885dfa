//! Ways to manage GPUs on the command line, by the names that files use.

use clap::builder::PossibleValuesParser;
use laxity_model::{GpuArbitration, GpuManagement, InterruptHandling};

/// Stands for each of them in turn.
const ALL: &str = "all";

/// Reads the name of an arbitration, or `all`.
pub fn arbitration_names() -> PossibleValuesParser {
    PossibleValuesParser::new(GpuArbitration::ALL.map(GpuArbitration::name).into_iter().chain([ALL]))
}

/// Reads the name of a handling, or `all`.
pub fn handling_names() -> PossibleValuesParser {
    PossibleValuesParser::new(InterruptHandling::ALL.map(InterruptHandling::name).into_iter().chain([ALL]))
}

/// The arbitrations named, each once; the file's if none is. Parameters are the file's where the name is.
pub fn arbitrations(names: &[String], file: &GpuManagement) -> Vec<GpuArbitration> {
    let named = |name: &str| GpuArbitration::named(name, file.arbitration);
    chosen(names, &GpuArbitration::ALL.map(GpuArbitration::name), named, file.arbitration)
}

/// The handlings named, each once; the file's if none is. Parameters are the file's where the name is.
pub fn handlings(names: &[String], file: &GpuManagement) -> Vec<InterruptHandling> {
    let named = |name: &str| InterruptHandling::named(name, file.handling);
    chosen(names, &InterruptHandling::ALL.map(InterruptHandling::name), named, file.handling)
}

fn chosen<T: PartialEq>(names: &[String], all: &[&str], named: impl Fn(&str) -> Option<T>, default: T) -> Vec<T> {
    let mut values = Vec::new();
    for name in names {
        let meant = if name == ALL { all.to_vec() } else { vec![name.as_str()] };
        for value in meant.into_iter().filter_map(&named) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    if values.is_empty() {
        values.push(default);
    }
    values
}

#[cfg(test)]
mod tests {
    use laxity_model::GpuSync;

    use super::*;

    #[test]
    fn each_is_chosen_once_with_the_files_parameters() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let sync = GpuArbitration::GpuSync(GpuSync { tokens: 3, ..GpuSync::DEFAULT });
        let file = GpuManagement { arbitration: sync, ..GpuManagement::default() };
        assert_eq!(arbitrations(&[], &file), [sync]);
        let all = arbitrations(&names(&["driver", "all"]), &file);
        assert_eq!((all.len(), all[4]), (5, sync));
        assert_eq!(handlings(&names(&["pai", "pai"]), &file), [InterruptHandling::ProcessAware]);
    }
}
