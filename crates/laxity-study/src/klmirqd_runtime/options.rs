//! What the paper does not say.

use std::fmt;
use std::str::FromStr;

/// Choices that the paper leaves open. [`Display`](fmt::Display) and [`FromStr`] write and read them as one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeOptions {
    /// Interrupts that a GPU-using job raises, spread evenly over its three operations, the later ones first to get one
    /// more; each operation's last one comes at its end. The paper gives no number for what it ran; its analysis takes 1,
    /// 3 and 6.
    pub interrupts: u32,
    /// Thousandths of a GPU-using job's CPU time that it executes beside its GPU work, in section V.
    ///
    /// The paper: "if a bottom-half has the priority to be scheduled, then it is likely that the owner of the
    /// bottom-half, making use of asynchronous I/O, also has sufficient priority". So owners execute when interrupts of
    /// theirs arrive. The copy in takes 8 % of a job's execution time; only with more than 40 % of its CPU time, itself
    /// 20 %, does the owner compute for longer than that. Half is the roundest share that does.
    pub overlap: u64,
    /// What a job of section V does while the GPU works for it and it has nothing else to do. The analysis of the paper
    /// has it suspend.
    pub waiting: Waiting,
    /// How long the halves of an interrupt take.
    pub halves: Halves,
    /// When the tasks of Table II begin.
    ///
    /// Under LITMUS^RT task sets are released synchronously. And 10.0 % of missed deadlines are two of the twenty
    /// CPU-only tasks of a cluster: released at once, six CPUs run eighteen jobs of 5 ms in the first 15 ms of their
    /// 20 ms, so that two are left with 5 ms and no time for overheads.
    pub phases: Phases,
    /// Which priority inversions count.
    pub definition: Definition,
}

/// What a job does while the GPU works for it and it has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// It suspends.
    Suspend,
    /// It executes until it would issue its last operation, as CUDA's default synchronization does: its share of the CPU
    /// is then as large as its utilization says.
    Poll,
}

/// How long the halves of an interrupt take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Halves {
    /// As [`laxity_gen::klmirqd_halves`] has it: Table III's means, a tail to 16 ms.
    LongTail,
    /// Always the means of Table III.
    Mean,
}

/// When the tasks of Table II begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phases {
    /// Each at a time uniform in its first period, another one in every repetition.
    Random,
    /// All at once.
    Synchronous,
}

/// Which priority inversions count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// Of whatever waits while a bottom half of lower priority runs.
    Any,
    /// Of what is among the m most urgent only: it would run but for bottom halves.
    Entitled,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        RuntimeOptions {
            interrupts: 3,
            overlap: 500,
            waiting: Waiting::Suspend,
            halves: Halves::LongTail,
            phases: Phases::Synchronous,
            definition: Definition::Any,
        }
    }
}

/// Options that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown option `{word}`; write interrupts=0 to {INTERRUPTS_MAX} (a job), overlap=0 to 1000 (thousandths), \
     waiting=suspend|poll, halves=long-tail|mean, phases=random|synchronous, definition=any|entitled"
)]
pub struct ParseRuntimeOptionsError {
    word: String,
}

/// More interrupts of one job than this are a mistake.
const INTERRUPTS_MAX: u32 = 100;

const WAITING: [(&str, Waiting); 2] = [("suspend", Waiting::Suspend), ("poll", Waiting::Poll)];
const HALVES: [(&str, Halves); 2] = [("long-tail", Halves::LongTail), ("mean", Halves::Mean)];
const PHASES: [(&str, Phases); 2] = [("random", Phases::Random), ("synchronous", Phases::Synchronous)];
const DEFINITION: [(&str, Definition); 2] = [("any", Definition::Any), ("entitled", Definition::Entitled)];

impl fmt::Display for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuntimeOptions { interrupts, overlap, .. } = self;
        let (waiting, halves) = (name(&WAITING, self.waiting), name(&HALVES, self.halves));
        let (phases, definition) = (name(&PHASES, self.phases), name(&DEFINITION, self.definition));
        write!(f, "interrupts={interrupts} overlap={overlap} waiting={waiting} ")?;
        write!(f, "halves={halves} phases={phases} definition={definition}")
    }
}

impl FromStr for RuntimeOptions {
    type Err = ParseRuntimeOptionsError;

    fn from_str(text: &str) -> Result<Self, ParseRuntimeOptionsError> {
        let mut options = RuntimeOptions::default();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let read = match key {
                "interrupts" => set(&mut options.interrupts, value.parse().ok().filter(|n| *n <= INTERRUPTS_MAX)),
                "overlap" => set(&mut options.overlap, value.parse().ok().filter(|share| *share <= 1_000)),
                "waiting" => set(&mut options.waiting, find(&WAITING, value)),
                "halves" => set(&mut options.halves, find(&HALVES, value)),
                "phases" => set(&mut options.phases, find(&PHASES, value)),
                "definition" => set(&mut options.definition, find(&DEFINITION, value)),
                _ => None,
            };
            read.ok_or_else(|| ParseRuntimeOptionsError { word: word.to_owned() })?;
        }
        Ok(options)
    }
}

fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|named| named.1 == value).map_or("", |named| named.0)
}

fn find<T: Copy>(names: &[(&str, T)], value: &str) -> Option<T> {
    names.iter().find(|named| named.0 == value).map(|named| named.1)
}

fn set<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_as_they_were_written() {
        for text in [
            "interrupts=1 overlap=333 waiting=suspend halves=long-tail phases=random definition=any",
            "interrupts=0 overlap=0 waiting=poll halves=mean phases=synchronous definition=entitled",
            "interrupts=100 overlap=1000 waiting=suspend halves=mean phases=random definition=any",
        ] {
            assert_eq!(text.parse::<RuntimeOptions>().map(|options| options.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("".parse(), Ok(RuntimeOptions::default()));
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_way_out() {
        for text in ["interrupts=101", "interrupts=-1", "overlap=1001", "halves", "phases=", "definition=all", "gpus=3"]
        {
            let error = text.parse::<RuntimeOptions>().expect_err("unknown").to_string();
            assert!(error.contains(text) && error.contains("phases=random|synchronous"), "{error}");
        }
    }
}
