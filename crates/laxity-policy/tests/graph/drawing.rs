//! Schedules as drawings: a row for each node, a column for each unit of time.

use crate::driver::Run;

/// Panics unless `run` looks like `expected`: `#` a job is ready or runs, `:` a job is released and waits, `.` none.
pub fn assert_drawn(run: &Run, expected: &[&str]) {
    let drawn: Vec<String> = expected.iter().enumerate().map(|(node, row)| draw(run, node, row.len())).collect();
    assert_eq!(drawn, expected, "drawn on the left");
}

fn draw(run: &Run, node: usize, columns: usize) -> String {
    let at = |now: u64| {
        let is_in =
            |from: Option<u64>, to: Option<u64>| from.is_some_and(|from| from <= now) && to.is_none_or(|to| now < to);
        if run.of(node).any(|job| is_in(job.ready, job.completed)) {
            '#'
        } else if run.of(node).any(|job| is_in(Some(job.released), job.ready)) {
            ':'
        } else {
            '.'
        }
    };
    (0..columns as u64).map(at).collect()
}
