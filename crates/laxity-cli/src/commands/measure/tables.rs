//! What was measured, as tables.

use laxity_measure::{Bytes, Probe};
use laxity_model::{Measurement, OverheadCosts, OverheadKind, OverheadProfile, Platform};

use crate::quantity::{TimeUnit, bytes, short};
use crate::table::{Cell, Table};

/// What is put beside: the event-driven realization that paper 002 measured with a coarse lock and global interrupts,
/// as Linux handles them, with the fewest tasks.
const PUBLISHED: [&str; 2] = ["brandenburg2009-CEm-worst-aligned", "brandenburg2009-CEm-average-aligned"];
const PUBLISHED_TASKS: usize = 50;

/// Where and how, on one line.
pub fn machine(measurement: &Measurement) -> String {
    let machine = &measurement.machine;
    let cpus: Vec<String> = machine.cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
    format!(
        "{}, Linux {}, governor {}; CPUs {} under {}, {}",
        or(&machine.processor, "unnamed processor"),
        or(&machine.kernel, "of unknown release"),
        or(&machine.governor, "none"),
        cpus.join(", "),
        machine.scheduler,
        short(machine.duration)
    )
}

/// A row a quantity.
pub fn quantities(measurement: &Measurement) -> Table {
    let columns = ["min", "median", "mean", "p99", "p99.9", "max"];
    let mut table = Table::of("seen").group("", &["samples"]).group("us", &columns).text("bandwidth");
    let machine = &measurement.machine;
    for probe in Probe::all(machine.cpus.len(), machine.working_set) {
        let Some(found) = measurement.quantity(&probe.to_string()) else {
            table.row(vec![probe.to_string().into(), Cell::faint("0")]);
            continue;
        };
        let spans = [found.min, found.median, found.mean, found.p99, found.p999, found.max];
        let mut cells: Vec<Cell> = vec![probe.to_string().into(), found.count.to_string().into()];
        cells.extend(spans.map(|span| TimeUnit::MICROS.show(span).into()));
        if let Probe::Copy(Bytes(copied)) = probe {
            // Bytes in a median time, in those of a second.
            let rate = u128::from(copied) * 1_000_000_000 / u128::from(found.median.0.max(1));
            cells.push(format!("{}/s", bytes(u64::try_from(rate).unwrap_or(u64::MAX))).into());
        }
        table.row(cells);
    }
    table
}

/// A row a source of overhead, with what paper 002 measured on another machine beside it.
pub fn profiles(measurement: &Measurement) -> Table {
    let heading = format!("paper 002: CEm, {PUBLISHED_TASKS} tasks, us");
    let mut table = Table::of("overhead")
        .group("this machine, us", &[&format!("worst ({})", measurement.machine.worst), "average"])
        .group(&heading, &["worst", "average"]);
    let published = PUBLISHED.map(|name| {
        // A published name, as a test of `laxity-model` says of all.
        OverheadProfile::published(name).unwrap_or_else(|_| OverheadProfile::zero()).at(PUBLISHED_TASKS)
    });
    let own = [&measurement.worst, &measurement.average].map(|profile| profile.at(1));
    let all = [own[0], own[1], published[0], published[1]];
    let is_measured = |kind: &OverheadKind| all.iter().any(|costs| !costs.of(*kind).is_zero());
    for kind in OverheadKind::ALL.into_iter().filter(is_measured) {
        let cell = |costs: &OverheadCosts| match costs.of(kind) {
            cost if cost.is_zero() => Cell::faint("-"),
            cost => TimeUnit::MICROS.show(cost).into(),
        };
        table.row([kind.name().replace('_', " ").into()].into_iter().chain(all.iter().map(cell)).collect());
    }
    table
}

/// What to say of an interruption that leaves nothing of a tick, as those of virtual machines may be.
pub fn too_long(measurement: &Measurement) -> Option<String> {
    let (tick, longest) = (Platform::identical(1).tick, measurement.worst.at(1).tick);
    (longest >= tick).then(|| {
        let (longest, tick) = (short(longest), short(tick));
        format!(
            "a tick costs {longest} at worst, and one comes every {tick} unless the platform says otherwise: nothing can be \
             proven with that; where a host takes CPUs away now and then, leave outliers out with --worst p99.9 or p99"
        )
    })
}

#[cfg(test)]
mod tests {
    use laxity_model::{CpuId, MeasuredMachine, MeasuredQuantity, Nanos};

    use super::*;

    fn measured(tick: Nanos) -> Measurement {
        let quantity = |name: &str, median| MeasuredQuantity {
            name: name.to_owned(),
            count: 3,
            min: Nanos(1_000),
            median,
            mean: median,
            p99: median,
            p999: median,
            max: Nanos(90_000_000),
        };
        Measurement {
            machine: MeasuredMachine { cpus: vec![CpuId(0)], working_set: 65_536, ..MeasuredMachine::default() },
            worst: OverheadProfile::constant("w", OverheadCosts { tick, ..OverheadCosts::default() }),
            average: OverheadProfile::zero(),
            quantities: vec![quantity("yield", Nanos(2_000)), quantity("copy_1MiB", Nanos(1_048_576))],
        }
    }

    #[test]
    fn quantities_have_their_samples_and_copies_their_bandwidth() {
        let text = quantities(&measured(Nanos(1))).render(None);
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        assert_eq!(row("yield ").split_whitespace().nth(3), Some("2.000"), "{text}");
        assert!(row("copy_1MiB").ends_with("1000.0 MB/s"), "a byte a nanosecond: {text}");
        assert!(row("clock").contains('0') && !row("clock").contains('.'), "no samples: {text}");
    }

    #[test]
    fn a_tick_that_leaves_nothing_to_jobs_is_said() {
        assert_eq!(too_long(&measured(Nanos(999_999))), None);
        let said = too_long(&measured(Nanos::from_millis(3))).expect("too long");
        assert!(said.starts_with("a tick costs 3 ms at worst, and one comes every 1 ms"), "{said}");
        let table = profiles(&measured(Nanos::from_millis(3))).render(None);
        assert!(table.contains("3000.000") && table.contains("paper 002"), "{table}");
    }
}
