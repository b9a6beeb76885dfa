//! Overhead-aware analysis: execution times are inflated, periods and deadlines shortened, and the result is tested as
//! if the machine had no overheads. Paper 002, sections 2 and 4; Brandenburg, Leontyev & Anderson, RTCSA 2009 and
//! Journal of Systems Architecture 57(6), 2011; Brandenburg's dissertation 2011, chapter 3.
//!
//! Which accounting of interrupts paper 002 used it does not say; [`task_centric`] is the default for hard and
//! [`preemption_centric`] for soft deadlines. Costs and execution times are rounded up, periods and deadlines down.

mod charges;
mod interpolation;
mod interrupts;
mod preemption_centric;
mod proportional;
mod quantum;
mod system;
mod task_centric;

pub use charges::{Charges, Inflated};
pub use interpolation::{Beyond, interpolate};
pub use interrupts::{InterruptLag, InterruptStream, interrupt_backlog, interrupt_busy_period};
pub use preemption_centric::{ExactCosts, PreemptionCentric, preemption_centric, preemption_centric_exact};
pub use quantum::{QuantumInterrupts, QuantumTiming, quantum};
pub use system::{OverheadError, System, Windows};
pub use task_centric::task_centric;
