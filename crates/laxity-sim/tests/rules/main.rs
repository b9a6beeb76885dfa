//! Every rule of the k-FMLP and of GPUSync that a schedule can show, each as a drawn schedule of the simulator.
//!
//! Tasks are numbered by priority, 0 the highest, and have one job. A drawing has a row for each CPU (`p`), execution
//! engine (`e`), copy engine (`c`, `d`) and task (`t`); see `laxity_trace::gantt::drawing`. In a row of a task `?` waits
//! for a lock, `-` is suspended, `.` is ready.
//!
//! | The k-FMLP (paper 000, appendix A) | `k_fmlp::` |
//! | --- | --- |
//! | R1: a request joins the queue of least `wait`, l-aware | `r1_length_aware_a_request_joins_the_queue_of_least_waiting_time` |
//! | R1: lengths include bottom halves | `r1_lengths_include_bottom_halves` |
//! | R1, l-oblivious | `r1_length_oblivious_a_request_joins_the_queue_of_fewest_requests` |
//! | R2: waiters are suspended; the holder inherits from its queue | `r2_waiters_are_suspended_and_the_holder_has_the_highest_priority_of_its_queue`, `r2_a_holder_inherits_from_its_own_queue_only` |
//! | R3: the next of the queue, else the highest blocked job is stolen | `r3_the_next_in_the_queue_follows_and_an_empty_queue_steals_the_highest_priority` |
//! | section IV: klmirqd's threads follow what their owners inherit | `klmirqd_a_thread_has_what_its_owner_inherits_at_once`, `klmirqd_a_thread_loses_what_its_owner_inherited_at_that_very_instant` |
//!
//! | GPUSync: tokens | `tokens::` |
//! | --- | --- |
//! | replica i belongs to GPU i mod g | `replica_i_is_a_token_of_gpu_i_modulo_g` |
//! | a request joins the shortest queue that has room | `a_request_joins_the_shortest_queue_and_the_head_of_a_queue_is_granted` |
//! | at most `max_in_fifos` requests in all queues | `no_more_requests_than_max_in_fifos_are_in_all_queues` |
//! | not among the m highest: the priority queue | `a_request_below_the_m_highest_waits_in_the_priority_queue_whose_head_has_the_free_place` |
//! | else donor of the lowest request without a higher donor | `a_request_among_the_m_highest_donates_to_the_lowest_and_its_priority_reaches_the_holder` |
//! | whose previous donor goes to the priority queue | `the_previous_donor_returns_to_the_priority_queue` |
//! | a holder inherits from its queue and their donors, a donee from its donor | `a_request_among_the_m_highest_donates_to_the_lowest_and_its_priority_reaches_the_holder` |
//! | release: inheritance is dropped | `an_unlock_ends_inheritance` |
//! | the place goes to the releaser's own donor | `a_free_place_is_that_of_the_releasers_own_donor` |
//! | else to the highest donor | `without_a_donor_of_its_own_the_place_is_that_of_the_highest_donor` |
//! | else to the head of the priority queue | `a_request_below_the_m_highest_waits_in_the_priority_queue_whose_head_has_the_free_place` |
//! | else the highest waiter is stolen | `an_idle_token_steals_the_highest_waiter` |
//! | then the head of the queue is granted | `a_request_joins_the_shortest_queue_and_the_head_of_a_queue_is_granted` |
//! | variants: the k-FMLP; (rho, f) | `with_one_token_and_queues_without_end_it_is_the_k_fmlp`, `more_tokens_let_engines_work_side_by_side` |
//! | predictor: least queue time plus own time, ties to the own GPU | `a_request_joins_the_queue_in_which_it_is_done_first` |
//! | migration by a peer copy | `a_job_that_moves_to_another_gpu_copies_its_state_from_peer_to_peer` |
//! | or a speculative copy to the host before the token is released | `on_the_path_over_the_host_state_is_copied_before_each_release_of_a_token` |
//! | a token from the first GPU call to the end of the job | `a_token_is_held_from_the_first_operation_to_the_end_of_the_job` |
//!
//! | GPUSync: engines | `engines::` |
//! | --- | --- |
//! | order FIFO or PRIO | `fifo_engine_locks_are_granted_in_the_order_of_requests`, `priority_engine_locks_are_granted_by_priority` |
//! | one copy engine is shared, two have a direction each | `both_directions_share_the_only_copy_engine`, `each_direction_has_one_of_two_copy_engines` |
//! | operations take the engine locks that they need | `tokens::operations_go_to_the_engines_of_the_gpu_whose_token_the_job_holds` |
//! | lock, issue, wait suspended, unlock; no spinning | `a_job_waits_suspended_for_its_operation` (`the_driver_may_have_jobs_spin`) |
//! | copies in chunks, preempted at their borders | `a_copy_in_chunks_is_preempted_where_one_ends` |
//! | a peer copy takes the engines of both GPUs, in their order | `tokens::a_peer_copy_takes_the_engines_of_its_direction`, `tokens::a_peer_copy_waits_for_both_engines`, `tokens::peer_copies_lock_engines_in_the_order_of_gpus` |
//! | holders inherit | `the_holder_of_an_engine_inherits` |
//! | one stream for each thread | `operations_of_a_job_are_one_stream` |
//!
//! | GPUSync: interrupts | `interrupts::` |
//! | --- | --- |
//! | the thread of a GPU has the highest priority of its token holders | `the_thread_of_a_gpu_has_the_highest_priority_of_its_token_holders`, `without_a_higher_holder_the_thread_has_its_owners_priority` |
//! | it is not scheduled beside its owner | `a_thread_never_runs_beside_its_owner` |
//! | callback threads are treated the same way | `a_callback_thread_has_the_highest_priority_of_the_token_holders_as_well`, `a_callback_thread_never_runs_beside_its_owner` (`without_klmirqd_a_callback_thread_is_below_all_jobs`, `a_graph_has_one_callback_thread`) |
//!
//! | GPUSync: budgets | `budgets.rs` |
//! | --- | --- |
//! | a holder that overruns: the next waiter is admitted at once, and granted at the unlock | `the_next_waiter_for_a_token_is_granted_it_when_the_overrun_ends` |
//! | the signal is masked inside lock and GPU calls | `an_overrun_in_a_critical_section_ends_with_the_section` |
//!
//! | Linux's fair class (decision 27) | `fair::` |
//! | --- | --- |
//! | slices, and the next thread | `a_slice_ends_at_the_first_tick_after_it_and_the_thread_least_ahead_is_next` |
//! | preemption by a woken thread | `a_woken_thread_preempts_if_it_is_behind_by_more_than_a_granularity` |
//! | credit of sleepers | `a_sleeper_is_owed_half_a_latency_and_no_more` |
//! | the CPU of a woken thread | `a_woken_thread_takes_an_idle_cpu_and_goes_on_where_it_was_before` |
//! | idle CPUs pull | `without_an_idle_cpu_it_waits_where_it_was_and_the_first_idle_cpu_takes_it` |
//! | interrupt threads are above it | `an_interrupt_thread_of_linux_has_real_time_priority` |
//! | no priorities: locks are first come, first served, and nothing is inherited | `a_holder_of_a_lock_inherits_nothing_and_the_first_waiter_is_next` |
//!
//! Drawn for the policies alone, in `laxity-policy`: what the predictor drops and learns and its other ties
//! (`tokens/affinity.rs`), requests for one GPU, and what a simulated job cannot do: exhaust its budget while it waits, or
//! amid a section that can be unwound (`tokens/budget.rs`, `tokens/rules.rs`).

mod ceilings;
mod engines;
mod fair;
mod interrupts;
mod k_fmlp;
mod system;
mod tokens;
