//! Assigning tasks to clusters, or to CPUs (clusters of one): worst, best and first fit.
//!
//! Loads are utilizations relative to a cluster's capacity of CPUs, compared exactly. Paper 000, section VII packs
//! GPU-using tasks first, then the others, each onto the least loaded cluster ([`Fit::Worst`] with two passes).

use std::cmp::Ordering;

use crate::Rational;
use crate::exact::whole;

/// Which cluster a task goes to, among those it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The one with the smallest load, ties to the lowest index.
    Worst,
    /// The one with the largest load that still has room.
    Best,
    /// The first with room.
    First,
}

/// In which order tasks are packed within a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// As given.
    Input,
    /// By falling utilization, ties as given.
    Decreasing,
}

/// Whether a task may be packed where it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// It is refused.
    Refuse,
    /// It goes to the least loaded cluster; the analysis of that cluster will then fail.
    Allow,
}

/// Where each task goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The cluster of each task.
    pub clusters: Vec<usize>,
    /// The total utilization on each cluster.
    pub loads: Vec<Rational>,
}

/// Packs tasks of the given utilizations onto clusters of `capacities` CPUs, in passes: first those with
/// `pass[i] == 0`, then 1, and so on.
///
/// # Errors
/// The index of the first task that fits nowhere, under [`Overflow::Refuse`] or if there is no cluster.
pub fn partition(
    utilizations: &[Rational],
    pass: &[u32],
    capacities: &[u32],
    fit: Fit,
    order: Order,
    overflow: Overflow,
) -> Result<Assignment, usize> {
    let mut sequence: Vec<usize> = (0..utilizations.len()).collect();
    let by_size = |a: usize, b: usize| match order {
        Order::Input => Ordering::Equal,
        Order::Decreasing => utilizations[b].cmp(&utilizations[a]),
    };
    // A stable sort keeps the given order among equals.
    let pass_of = |index: usize| pass.get(index).copied().unwrap_or(0);
    sequence.sort_by(|&a, &b| pass_of(a).cmp(&pass_of(b)).then_with(|| by_size(a, b)));
    let mut loads = vec![whole(0); capacities.len()];
    let mut clusters = vec![0; utilizations.len()];
    for index in sequence {
        let size = &utilizations[index];
        let fits = |cluster: &usize| &loads[*cluster] + size <= whole(capacities[*cluster]);
        let room = (0..capacities.len()).filter(fits);
        let chosen = choose(room, &loads, fit).or_else(|| match overflow {
            Overflow::Refuse => None,
            Overflow::Allow => choose(0..capacities.len(), &loads, Fit::Worst),
        });
        let cluster = chosen.ok_or(index)?;
        loads[cluster] += size;
        clusters[index] = cluster;
    }
    Ok(Assignment { clusters, loads })
}

fn choose(mut room: impl Iterator<Item = usize>, loads: &[Rational], fit: Fit) -> Option<usize> {
    match fit {
        Fit::First => room.next(),
        Fit::Worst => room.reduce(|best, cluster| if loads[cluster] < loads[best] { cluster } else { best }),
        Fit::Best => room.reduce(|best, cluster| if loads[cluster] > loads[best] { cluster } else { best }),
    }
}
