//! How long to wait before one looks again.

use laxity_model::Nanos;

/// Pauses that double, from a first one up to a longest one.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Nanos,
    longest: Nanos,
    next: Nanos,
}

impl Backoff {
    /// The first pause, and the longest.
    pub fn new(first: Nanos, longest: Nanos) -> Backoff {
        Backoff { first, longest, next: first }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Nanos {
        let pause = self.next;
        self.next = Nanos(pause.0.saturating_mul(2)).min(self.longest);
        pause
    }

    /// Starts over with the first pause.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over() {
        let mut backoff = Backoff::new(Nanos(3), Nanos(10));
        let pauses: Vec<u64> = (0..4).map(|_| backoff.pause().0).collect();
        assert_eq!(pauses, [3, 6, 10, 10]);
        backoff.reset();
        assert_eq!(backoff.pause(), Nanos(3));
    }
}
