//! Analytic bounds against the simulator: never exceeded over 37,500 random systems, and attained by some.
//!
//! | Bound | Source | Systems | Test |
//! | --- | --- | --- | --- |
//! | k-FMLP, equations 1 and 2, holders always run | paper 000, appendix A | 3,000 | `k_fmlp::no_wait_is_longer_than_equations_1_and_2_say` |
//! | the same, pi-blocking on m CPUs | | 2,000 | `k_fmlp::no_pi_blocking_is_longer_than_equations_1_and_2_say` |
//! | tokens, `(2 f - 1) L` at `rho g f = m` | GPUSync | 10,000 | `tokens::no_request_that_stays_among_the_m_highest_is_blocked_for_longer_than_its_bound` |
//! | FIFO engine locks | GPUSync | 1,500 | `tokens::no_wait_for_an_engine_is_longer_than_one_operation_of_each_other_holder` |
//! | offsets `O_k` of graphs | Goddard 1998; Liu & Anderson, RTSS 2010 | 1,000 | `graphs::no_node_is_released_later_than_its_offset_says` |
//! | data age and reaction time of chains | Davare et al., DAC 2007; decision 67 | 4,000 | `chains::no_data_is_older_and_no_reaction_later_than_the_bounds_of_chains_say` |
//! | equation 4 with spans of the bandwidth lock, lengthened by formula 9 | paper 004; docs/reference/bandwidth-model.md | 10,000 | `bandwidth::no_job_is_later_than_equation_4_says` |
//! | formula 9, and 7 without the lock | docs/reference/bandwidth-model.md | 10,000 | `bandwidth::no_protected_kernel_takes_longer_than_formula_9_says` |
//!
//! Nothing costs anything in these systems, but bottom halves in half of those of equations 1 and 2, where they are part
//! of the time for which a GPU is held. Every system has a seed, which a failure names.

mod bandwidth;
mod chains;
mod graphs;
mod k_fmlp;
mod system;
mod tokens;
mod waits;
