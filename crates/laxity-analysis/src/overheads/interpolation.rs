//! Exact values of overhead tables, with a choice of what lies beyond their ends.
//!
//! [`laxity_model::OverheadTable::at`] is the default (the first value holds, the last segment continues, rounded up
//! to the nanosecond); this is for comparisons.

use laxity_model::OverheadTable;

use crate::exact::{Rational, rational, whole};

/// What a table says outside its measured points, of which paper 002 is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// The nearest value.
    Hold,
    /// The nearest segment continues, not below zero. At the left end this yields zero for few tasks: unsafe.
    Extrapolate,
}

/// Monotone piece-wise linear interpolation at `tasks` tasks, in picoseconds, exactly: each value is first raised to
/// the largest at fewer tasks. Paper 002, section 4.1. An empty table yields 0.
pub fn interpolate(table: &OverheadTable, tasks: u64, left: Beyond, right: Beyond) -> Rational {
    let points = match table {
        OverheadTable::Constant(cost) => return whole(u128::from(cost.0) * 1_000),
        OverheadTable::Points(points) => running_maximum(points),
    };
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return whole(0) };
    if points.len() == 1 || (tasks <= first.0 && left == Beyond::Hold) {
        return whole(first.1);
    }
    if tasks >= last.0 && right == Beyond::Hold {
        return whole(last.1);
    }
    // The segment that contains `tasks`, or the outermost one on its side.
    let upper = points.iter().position(|point| tasks <= point.0).unwrap_or(points.len() - 1).max(1);
    let (low, high) = (points[upper - 1], points[upper]);
    let slope = rational(i128::from(high.1) - i128::from(low.1), high.0 - low.0);
    (whole(low.1) + slope * whole(i128::from(tasks) - i128::from(low.0))).max(whole(0))
}

fn running_maximum(points: &[(u32, u64)]) -> Vec<(u64, u64)> {
    let mut highest = 0;
    points
        .iter()
        .map(|&(tasks, value)| {
            highest = value.max(highest);
            (u64::from(tasks), highest)
        })
        .collect()
}
