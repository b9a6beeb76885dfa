//! Ways to manage GPUs on the command line. Parameters that a way has are those of the file where the file names the same
//! way, else the defaults.

use clap::ValueEnum;
use laxity_model::{GpuArbitration, GpuManagement, GpuSync, InterruptHandling, ThreadPriority};

/// What `--arbitration` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ArbitrationChoice {
    /// Each of them in turn
    All,
    /// The driver: operations go to the engines in the order of issue
    Driver,
    /// The driver, whose callers spin until their operation is complete
    DriverSpinning,
    /// A counting semaphore for GPUs: FIFO, without inheritance
    Semaphore,
    /// The k-FMLP: FIFO queues with inheritance
    KFmlp,
    /// GPUSync: tokens for GPUs, then locks for their engines
    Gpusync,
}

/// What `--handling` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum HandlingChoice {
    /// Each of them in turn
    All,
    /// Right after the interrupt, on the CPU that took it
    Linux,
    /// In threads below every real-time task
    PreemptRtLow,
    /// In threads above every real-time task
    PreemptRtHigh,
    /// By the priority of their owner, on the stack of the least urgent job
    Pai,
    /// In threads with the priority of their owner, never beside it
    Klmirqd,
}

const ARBITRATIONS: [ArbitrationChoice; 5] = [
    ArbitrationChoice::Driver,
    ArbitrationChoice::DriverSpinning,
    ArbitrationChoice::Semaphore,
    ArbitrationChoice::KFmlp,
    ArbitrationChoice::Gpusync,
];

const HANDLINGS: [HandlingChoice; 5] = [
    HandlingChoice::Linux,
    HandlingChoice::PreemptRtLow,
    HandlingChoice::PreemptRtHigh,
    HandlingChoice::Pai,
    HandlingChoice::Klmirqd,
];

/// The arbitrations chosen, each once; the file's if none is.
pub fn arbitrations(choices: &[ArbitrationChoice], file: &GpuManagement) -> Vec<GpuArbitration> {
    let with_parameters = |choice| arbitration(choice, file.arbitration);
    chosen(choices, ArbitrationChoice::All, &ARBITRATIONS, with_parameters, file.arbitration)
}

/// The handlings chosen, each once; the file's if none is.
pub fn handlings(choices: &[HandlingChoice], file: &GpuManagement) -> Vec<InterruptHandling> {
    chosen(choices, HandlingChoice::All, &HANDLINGS, |choice| handling(choice, file.handling), file.handling)
}

fn chosen<C: Copy + PartialEq, T: PartialEq>(
    choices: &[C],
    all: C,
    each: &[C],
    value: impl Fn(C) -> T,
    default: T,
) -> Vec<T> {
    let mut values = Vec::new();
    for &choice in choices {
        let meant = if choice == all { each.to_vec() } else { vec![choice] };
        for value in meant.into_iter().map(&value) {
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

fn arbitration(choice: ArbitrationChoice, file: GpuArbitration) -> GpuArbitration {
    match (choice, file) {
        (ArbitrationChoice::KFmlp, GpuArbitration::KFmlp { .. }) => file,
        (ArbitrationChoice::Gpusync, GpuArbitration::GpuSync(_)) => file,
        (ArbitrationChoice::All | ArbitrationChoice::Driver, _) => GpuArbitration::Driver,
        (ArbitrationChoice::DriverSpinning, _) => GpuArbitration::DriverSpinning,
        (ArbitrationChoice::Semaphore, _) => GpuArbitration::Semaphore,
        (ArbitrationChoice::KFmlp, _) => GpuArbitration::KFmlp { length_aware: false },
        (ArbitrationChoice::Gpusync, _) => GpuArbitration::GpuSync(GpuSync::DEFAULT),
    }
}

fn handling(choice: HandlingChoice, file: InterruptHandling) -> InterruptHandling {
    match (choice, file) {
        (HandlingChoice::Klmirqd, InterruptHandling::Klmirqd { .. }) => file,
        (HandlingChoice::All | HandlingChoice::Linux, _) => InterruptHandling::Linux,
        (HandlingChoice::PreemptRtLow, _) => InterruptHandling::PreemptRt(ThreadPriority::Low),
        (HandlingChoice::PreemptRtHigh, _) => InterruptHandling::PreemptRt(ThreadPriority::High),
        (HandlingChoice::Pai, _) => InterruptHandling::ProcessAware,
        (HandlingChoice::Klmirqd, _) => InterruptHandling::Klmirqd { threads: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_called_as_in_files() {
        let none = GpuManagement::default();
        for choice in ARBITRATIONS {
            let value = choice.to_possible_value().expect("shown");
            assert_eq!(value.get_name(), arbitrations(&[choice], &none)[0].name());
        }
        for choice in HANDLINGS {
            let value = choice.to_possible_value().expect("shown");
            assert_eq!(value.get_name(), handlings(&[choice], &none)[0].name());
        }
    }

    #[test]
    fn the_files_parameters_stay_where_the_way_stays() {
        let sync = GpuArbitration::GpuSync(GpuSync { tokens: 3, ..GpuSync::DEFAULT });
        let file = GpuManagement { arbitration: sync, ..GpuManagement::default() };
        assert_eq!(arbitrations(&[], &file), [sync]);
        let all = arbitrations(&[ArbitrationChoice::Driver, ArbitrationChoice::All], &file);
        assert_eq!((all.len(), all[4]), (5, sync));
        assert_eq!(handlings(&[HandlingChoice::Pai, HandlingChoice::Pai], &file), [InterruptHandling::ProcessAware]);
    }
}
