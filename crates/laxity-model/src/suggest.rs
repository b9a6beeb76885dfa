//! "Did you mean": the nearest of a list of names.

/// Longer names are not compared: a typing mistake of a letter or two is unlikely to matter there, and the comparison takes quadratic time.
const LONGEST_NAME: usize = 64;

/// In longer lists nothing is looked for, so that a file full of mistakes is still reported at once.
const LONGEST_LIST: usize = 1_024;

/// The candidate nearest to `name`, if it is near enough to be what was meant: at most a third of the letters differ.
/// Among equally near ones, the first.
pub(crate) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let length = name.chars().count();
    if length > LONGEST_NAME {
        return None;
    }
    let wanted = name.to_lowercase();
    let limit = (length / 3).max(1).min(length.saturating_sub(1));
    candidates
        .into_iter()
        .take(LONGEST_LIST)
        .filter(|candidate| candidate.len() <= 2 * LONGEST_NAME)
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The end of an error message about an unknown `name`: the suggestion, or else every candidate.
pub(crate) fn way_out<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str> + Clone) -> String {
    match nearest(name, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("write one of {}", list(candidates)),
    }
}

/// `a`, `b`, `c`; cut short where the list is long.
pub(crate) fn list<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    const SHOWN: usize = 16;
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = names.count();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_a_stranger_finds_none() {
        let fields = ["name", "period", "deadline", "phase"];
        assert_eq!(nearest("dedline", fields), Some("deadline"));
        assert_eq!(nearest("Period", fields), Some("period"));
        assert_eq!(nearest("colour", fields), None);
        assert_eq!(nearest(&"p".repeat(65), fields), None);
        assert_eq!(nearest("B", ["A", "C"]), None, "a letter for a letter is no typo");
    }

    #[test]
    fn without_a_near_name_all_are_listed() {
        assert_eq!(way_out("xyz", ["a1234", "b1234"]), "write one of `a1234`, `b1234`");
        assert_eq!(way_out("a123", ["a1234", "b1234"]), "did you mean `a1234`?");
    }
}
