//! What a node says of itself to a scheduler below, in one word of shared memory (paper 003, section 5.2.3).
//!
//! The node's owner alone writes the word, with plain stores; [`Graph::flags_offset`](crate::Graph::flags_offset) tells
//! where it is. If the owner was killed the flags stay as they were until the node is claimed again.

/// "Token-wait": set before the owner suspends for tokens, room or a release, and cleared when it goes on. A scheduler
/// that finds it when it wakes the thread knows that a new job may begin, whose deadline follows from its last token.
pub const TOKEN_WAIT: u32 = 1;

/// "Token-sending": set while a job that completes wakes two consumers or more. A scheduler that is about to preempt
/// the thread may let it finish first; waking takes no lock and is over after one system call for each consumer.
pub const TOKEN_SENDING: u32 = 2;
