//! What was found, for people.

use std::fmt::Write as _;

use laxity_tune::{Effort, Ranked, Score};

use super::Found;
use crate::quantity::{counted, short};
use crate::style::{FAINT, GOOD, RESET, STRONG};
use crate::table::{Cell, Table, cut};

/// Lists of changes are cut at this width.
const CHANGES_WIDTH_MAX: usize = 90;
/// Bottlenecks named.
const BOTTLENECKS: usize = 3;

/// The tables.
pub fn text(found: &Found, effort: &Effort, width: Option<usize>) -> String {
    let mut out = format!("{STRONG}{}{RESET}\n", found.workload);
    let load = if found.load_permille == 1_000 {
        String::new()
    } else {
        format!(" at {} of its load", percent(found.load_permille as i64 * 1_000))
    };
    let _ = writeln!(
        out,
        "{FAINT}tried {} of {}{load}, each simulated for {}, the best for longer; % of deadlines, and for graphs of \
         periods{RESET}\n",
        counted(found.tuned.tried as u64, "configuration"),
        found.tuned.settings,
        short(effort.simulated)
    );
    let mut table = columns(Table::of("")).text("changes");
    for (number, ranked) in found.tuned.best.iter().enumerate() {
        table.row(row(&(number + 1).to_string(), &ranked.score, describe(ranked)));
    }
    table.total(row("file", &found.tuned.own.score, String::new()));
    out.push_str(&table.render(width));
    out.push('\n');
    if !found.tuned.changes.is_empty() {
        let mut table = columns(Table::of("what each change buys"));
        for effect in &found.tuned.changes {
            let change = cut(&format!("{}: {}", effect.change.what, effect.change.to), CHANGES_WIDTH_MAX);
            table.row(row(&format!("{change}, alone"), &effect.alone, String::new()));
            table.row(row("  the best without it", &effect.without, String::new()));
        }
        out.push_str(&table.render(width));
        out.push('\n');
    }
    out.push_str(&way_out(found));
    out
}

fn columns(table: Table) -> Table {
    table
        .group("proven", &["least laxity, %"])
        .text("of")
        .group("simulated, %", &["p99", "max"])
        .text("of")
        .group("late", &[""])
}

fn row(name: &str, score: &Score, changes: String) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![name.into()];
    cells.extend(match &score.proof {
        Some(proof) => [Cell::good(decimal(proof.laxity_ppm)), proof.tightest.as_str().into()],
        None => [Cell::faint("not proven"), Cell::default()],
    });
    cells.extend(match &score.tail {
        Some(tail) => [
            decimal(tail.p99_ppm.min(i64::MAX as u64) as i64).into(),
            decimal(tail.max_ppm.min(i64::MAX as u64) as i64).into(),
            tail.worst.as_str().into(),
            Cell::mishaps(tail.missed),
        ],
        None => [Cell::faint("-"), Cell::faint("-"), Cell::default(), Cell::faint("impossible")],
    });
    cells.push(cut(&changes, CHANGES_WIDTH_MAX).into());
    cells
}

/// `scheduler P-RM, tokens held to the end of the GPU section`.
fn describe(ranked: &Ranked) -> String {
    let changes: Vec<String> = ranked.changes.iter().map(|change| format!("{}: {}", change.what, change.to)).collect();
    if changes.is_empty() { "none: the file's own".to_owned() } else { changes.join("; ") }
}

/// By how much the best may grow, or what must shrink.
fn way_out(found: &Found) -> String {
    let mut out = String::new();
    let Some(best) = found.tuned.best.first() else { return out };
    match (&best.score.proof, found.tuned.growth_permille) {
        (Some(proof), growth) => {
            let bound = if found.tuned.growth_is_capped { ">=" } else { "" };
            let factor = |permille| format!("{bound}{}.{:03}", permille / 1_000, permille % 1_000);
            let times = growth.map(|permille| format!(" up to {} times these execution times", factor(permille)));
            // There is none where nothing has a deadline.
            let tightest = Some(&proof.tightest).filter(|name| !name.is_empty());
            let tightest = tightest.map(|name| format!("; {name} is the tightest"));
            let _ = writeln!(
                out,
                "{GOOD}the best is proven{RESET}{}{}",
                times.unwrap_or_default(),
                tightest.unwrap_or_default()
            );
        }
        (None, growth) => {
            let why = best.score.unproven.as_deref().unwrap_or("no test proves it");
            let _ = writeln!(out, "the best is not proven: {why}");
            if let Some(permille) = growth.filter(|&permille| permille < 1_000) {
                let _ = writeln!(out, "it would be with {} of all execution times", percent(permille as i64 * 1_000));
            }
            for bottleneck in found.tuned.bottlenecks.iter().take(BOTTLENECKS) {
                let _ = writeln!(
                    out,
                    "it would be if {} alone shrank to {}",
                    bottleneck.name,
                    percent(bottleneck.permille as i64 * 1_000)
                );
            }
            if let Some(tail) = best.score.tail.as_ref().filter(|_| found.tuned.bottlenecks.is_empty()) {
                let _ = writeln!(out, "{} has the longest tail: that is the one to make shorter", tail.worst);
            }
        }
    }
    out
}

/// A score in a few words.
pub fn brief(score: &Score) -> String {
    match (&score.proof, &score.tail) {
        (Some(proof), _) => format!("{} proven laxity", percent(proof.laxity_ppm)),
        (None, Some(tail)) => {
            format!("p99 {}, {} late", percent(tail.p99_ppm.min(i64::MAX as u64) as i64), tail.missed)
        }
        (None, None) => "none yet".to_owned(),
    }
}

/// Millionths as percent, to the nearest tenth. Something is never shown as nothing.
fn percent(ppm: i64) -> String {
    format!("{} %", decimal(ppm))
}

fn decimal(ppm: i64) -> String {
    let tenths = (ppm.unsigned_abs() + 500) / 1_000;
    if tenths == 0 && ppm != 0 {
        return if ppm < 0 { ">-0.1" } else { "<0.1" }.to_owned();
    }
    format!("{}{}.{}", if ppm < 0 { "-" } else { "" }, tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_rounded_to_the_nearest_tenth_and_hide_nothing() {
        assert_eq!([123_449, 123_450, -123_450].map(decimal), ["12.3", "12.3", "-12.3"]);
        assert_eq!([123_500, 999_999, 0].map(decimal), ["12.4", "100.0", "0.0"]);
        assert_eq!([499, -499, 500, -500].map(decimal), ["<0.1", ">-0.1", "0.1", "-0.1"]);
    }
}
