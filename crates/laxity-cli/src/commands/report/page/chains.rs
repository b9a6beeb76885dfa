//! Chains: how old data is where it is used, and how soon an event shows.

use laxity_model::Nanos;
use laxity_trace::metrics::{ChainSummary, DistributionSummary};

use super::markup::{bad, escape, table as markup_table};
use crate::commands::report::gather::Evidence;
use crate::quantity::TimeUnit;

/// A row for the data age and one for the reaction time of each chain; nothing without chains.
pub fn table(evidence: &Evidence) -> String {
    let Some(first) = evidence.observed.first().filter(|first| !first.summary.chains.is_empty()) else {
        return String::new();
    };
    let longest = first.summary.chains.iter().filter_map(|chain| chain.reaction_time.as_ref()).map(|times| times.max);
    let unit = TimeUnit::for_longest(longest.max().unwrap_or(Nanos(1)));
    let mut heads = vec!["chain".to_owned(), "".to_owned(), "deadline".to_owned()];
    if evidence.proof.is_some() {
        heads.push("proven bound".to_owned());
    }
    for observed in &evidence.observed {
        heads.push(format!("{}: median", escape(&observed.label)));
        heads.extend(["p99".to_owned(), "max".to_owned(), "late".to_owned()]);
    }
    let mut rows = Vec::new();
    for (index, chain) in first.summary.chains.iter().enumerate() {
        for is_age in [true, false] {
            rows.push(row(evidence, index, chain, is_age, unit));
        }
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    format!("<h2>Chains, {}</h2>\n{}", unit.name, markup_table(&heads, &rows, &[], 2))
}

fn row(evidence: &Evidence, index: usize, chain: &ChainSummary, is_age: bool, unit: TimeUnit) -> Vec<String> {
    let span = |span: Option<Nanos>| span.map_or_else(|| "-".to_owned(), |span| unit.show(span));
    let deadline = if is_age { chain.data_age_max } else { chain.reaction_time_max };
    let what = if is_age { "data age" } else { "reaction time" };
    let mut cells = vec![escape(&chain.name), what.to_owned(), span(deadline)];
    let mut proven = None;
    if let Some(proof) = &evidence.proof {
        let bounds = proof.chains.get(index).and_then(|chain| chain.bounds.as_ref().ok());
        let bound = bounds.map(|bounds| if is_age { bounds.data_age } else { bounds.reaction_time });
        proven = bound;
        cells.push(match bound.zip(deadline) {
            Some((bound, deadline)) if bound > deadline => bad(&unit.show(bound)),
            _ => span(bound),
        });
    }
    for observed in &evidence.observed {
        let seen = observed.summary.chains.iter().find(|other| other.name == chain.name);
        let times: Option<&DistributionSummary> =
            seen.and_then(|seen| if is_age { seen.data_age.as_ref() } else { seen.reaction_time.as_ref() });
        cells.extend([times.map(|times| times.p50), times.map(|times| times.p99)].map(span));
        let longest = times.map(|times| times.max);
        let most = proven.filter(|_| observed.unbounded.is_none()).or(deadline);
        let is_beyond = longest.zip(most).is_some_and(|(longest, most)| longest > most);
        cells.push(if is_beyond { bad(&span(longest)) } else { span(longest) });
        cells.push(seen.map_or_else(|| "-".to_owned(), |seen| seen.missed.to_string()));
    }
    cells
}
