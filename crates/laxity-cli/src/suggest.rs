//! "Did you mean": the nearest of a list of names.

/// The name nearest to `text`: at most one letter in three may differ, capitals aside; among equally near names the
/// first. A letter for a letter is no typo.
pub fn nearest_of(text: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    let wanted = text.to_lowercase();
    let length = wanted.chars().count();
    let limit = (length / 3).max(1).min(length.saturating_sub(1));
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
