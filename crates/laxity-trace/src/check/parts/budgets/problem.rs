//! What can be wrong with a budget.

use std::fmt;

use laxity_model::{Instant, Nanos};

/// What is wrong with a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetProblem {
    /// It is larger than a whole one.
    Large {
        /// It.
        budget: Nanos,
        /// A whole one.
        whole: Nanos,
    },
    /// It is smaller than a whole one, though its server always gets whole ones.
    Small {
        /// It.
        budget: Nanos,
        /// A whole one.
        whole: Nanos,
    },
    /// The one before is not due yet, and the server has had work all the time, or left too little unused.
    Early {
        /// When that is due.
        due: Instant,
    },
    /// It is due more than a period after it was given.
    Late {
        /// When it is due.
        deadline: Instant,
        /// The latest that is allowed.
        latest: Instant,
    },
    /// It is due less than a period after it was given.
    Short {
        /// When it is due.
        deadline: Instant,
        /// When it must be.
        expected: Instant,
    },
    /// A soft server's is not due whole periods after the one before.
    OffPeriod {
        /// When it is due.
        deadline: Instant,
        /// When the one before is.
        before: Instant,
    },
    /// The one before is not used up, and the server has had work all the time.
    Unused {
        /// What is left of that.
        left: Nanos,
    },
    /// A sporadic server has used parts of it less than a period ago, which have not come back yet.
    NotBack {
        /// It.
        budget: Nanos,
        /// How much of the budget was there when it was activated.
        back: Nanos,
    },
}

impl fmt::Display for BudgetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetProblem::Large { budget, whole } | BudgetProblem::Small { budget, whole } => {
                write!(f, "is given a budget of {budget}; a whole one is {whole}")
            }
            BudgetProblem::Early { due } => write!(f, "is given a budget while the one before is due at {due} only"),
            BudgetProblem::Late { deadline, latest } => {
                write!(
                    f,
                    "is given a budget that is due at {deadline}; it must be at {latest}, a period later, or before"
                )
            }
            BudgetProblem::Short { deadline, expected } => {
                write!(f, "is given a budget that is due at {deadline}; it must be at {expected}, a period later")
            }
            BudgetProblem::OffPeriod { deadline, before } => write!(
                f,
                "goes on with a budget that is due at {deadline}, which is not whole periods after the one before, at {before}"
            ),
            BudgetProblem::Unused { left } => {
                write!(f, "goes on with another budget while {left} of the one before are left")
            }
            BudgetProblem::NotBack { budget, back } => write!(
                f,
                "is given a budget of {budget}; {back} were there, as what is used comes back a period after its budget was given"
            ),
        }
    }
}
