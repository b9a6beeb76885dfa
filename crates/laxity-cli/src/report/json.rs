//! A report for programs. The fields are described in `docs/reference/json.md` and are stable.

use laxity_trace::metrics;
use serde::Serialize;

use super::Report;

/// One report as one JSON object.
pub fn one(report: &Report) -> String {
    pretty(&run(report))
}

/// Several reports as one JSON object: `{"laxity": ..., "runs": [...]}`.
pub fn many(reports: &[Report]) -> String {
    #[derive(Serialize)]
    struct Runs<'a> {
        laxity: &'static str,
        runs: Vec<metrics::Report<'a>>,
    }
    pretty(&Runs { laxity: env!("CARGO_PKG_VERSION"), runs: reports.iter().map(run).collect() })
}

fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("numbers, texts and maps of text keys are JSON");
    text.push('\n');
    text
}

fn run(report: &Report) -> metrics::Report<'_> {
    let interrupted = report.cut_short.is_some();
    metrics::Report::new(&report.header, &report.summary, report.overheads.as_deref(), interrupted)
}
