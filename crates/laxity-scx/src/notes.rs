//! What the scheduler in the kernel writes down: `struct laxity_note` of `bpf/happen.h`.

use crate::layout::Fields;

/// An event, and the links that changed by it. CPUs are those of the cluster, from 0, but for [`OUTSIDE`] ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its place in the order of all notes of the cluster, from 0 without a gap.
    pub sequence: u64,
    /// On the monotonic clock, in ns, just before the event took the cluster's lock.
    pub at: u64,
    /// The event; `None`: one that shows in its links only.
    pub event: Option<Happening>,
    /// The cluster.
    pub cluster: u16,
    /// Where it happened.
    pub cpu: u16,
    /// The task's number.
    pub task: u16,
    /// CPUs and the tasks that are linked to them from now on.
    pub links: Vec<(u16, Option<u16>)>,
}

/// What happens to a task, or to a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A job is released. Times in ns on the monotonic clock.
    Release {
        /// Its release.
        release: u64,
        /// The deadline by which it ranks under EDF: its own, or that of its task's budget.
        rank: u64,
    },
    /// The job is complete.
    Complete,
    /// The job suspended itself.
    Suspend,
    /// Its suspension ended.
    Resume,
    /// Its thread has the CPU.
    Run,
    /// Its thread lost the CPU and could go on.
    Stop,
    /// Its thread is a task no more: it has ended, or its class changed, or the scheduler ends.
    Forget,
    /// It has another effective priority.
    Priority {
        /// Under EDF an absolute deadline in ns on the monotonic clock, else a level.
        urgency: u64,
        /// The task that it belongs to: its own, or that of a job that waits for it.
        of: u16,
    },
    /// It is an interrupt thread that has work, at that priority. It has no job otherwise.
    Work {
        /// The task whose job it works for; `None`: for none.
        owner: Option<u16>,
        /// As of [`Happening::Priority`].
        urgency: u64,
        /// As of [`Happening::Priority`].
        of: u16,
    },
    /// Its thread keeps the CPU, which another job should have: it is in a non-preemptive section.
    Enter,
    /// It keeps it no more.
    Exit,
    /// A quantum begins: the links of the note are decided. With aligned quanta those of all CPUs of the cluster, with
    /// staggered ones that of the note's CPU.
    Tick,
}

/// Where an event happened on a CPU outside the cluster: this, and the number that the machine gives the CPU.
pub const OUTSIDE: u16 = 0x8000;

/// No task.
const NONE: u16 = 0xffff;

impl Note {
    /// Bytes of the structure, without the links that may follow it.
    pub const SIZE: usize = 72;

    /// As the kernel wrote it; `None` if that is no note.
    pub fn read(bytes: &[u8]) -> Option<Note> {
        let mut fields = Fields::of(bytes);
        let (sequence, at) = (fields.next_u64()?, fields.next_u64()?);
        let (number, extra, _kicks) = (fields.next_u64()?, fields.next_u64()?, fields.next_u64()?);
        let (kind, cluster, cpu, task) =
            (fields.next_u16()?, fields.next_u16()?, fields.next_u16()?, fields.next_u16()?);
        let (_state, _linked_to) = (fields.next_u16()?, fields.next_u16()?);
        let (is_news, count) = (fields.next_u16()?, fields.next_u16()?);
        let mut links = Vec::new();
        for _ in 0..count {
            let (cpu, task) = (fields.next_u16()?, fields.next_u16()?);
            links.push((cpu, (task != NONE).then_some(task)));
        }
        let event = match kind {
            _ if is_news == 0 => None,
            0 => Some(Happening::Release { release: extra, rank: number }),
            1 => Some(Happening::Complete),
            2 => Some(Happening::Suspend),
            3 => Some(Happening::Resume),
            4 => Some(Happening::Run),
            5 => Some(Happening::Stop),
            9 => Some(Happening::Forget),
            10 => Some(Happening::Priority { urgency: number, of: u16::try_from(extra).unwrap_or(task) }),
            11 => {
                let of = u16::try_from(extra).unwrap_or(task);
                Some(Happening::Work { owner: (cpu != NONE).then_some(cpu), urgency: number, of })
            }
            12 => Some(Happening::Enter),
            13 => Some(Happening::Exit),
            14 => Some(Happening::Tick),
            _ => None,
        };
        // In its place such a note has the owner.
        let cpu = if kind == 11 { 0 } else { cpu };
        Some(Note { sequence, at, event, cluster, cpu, task, links })
    }
}
