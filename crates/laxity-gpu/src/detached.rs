//! Tokens and engines that are held beyond a scope of Rust: by an object of another language, for example.

use std::sync::Arc;

use laxity_model::{Engine, LockId, ReplicaId, TaskId};

use crate::arbitration::Membership;
use crate::client::Client;
use crate::token::{EngineLock, Token};

/// A token that its client still holds after [`Token::detach`]. [`Client::reattach`] makes it a token again. Otherwise it
/// is held until the client is dropped or its thread ends.
#[derive(Debug)]
#[must_use = "the token is held until the client is dropped"]
pub struct DetachedToken {
    holder: Holder,
    replica: ReplicaId,
}

/// An engine that its client still holds after [`EngineLock::detach`], as a [`DetachedToken`].
#[derive(Debug)]
#[must_use = "the engine is held until the client is dropped"]
pub struct DetachedEngine {
    holder: Holder,
    lock: LockId,
    gpu: u16,
    engine: Engine,
}

/// Which client of which arbitration.
#[derive(Debug)]
struct Holder {
    membership: Arc<Membership>,
    task: TaskId,
}

impl Holder {
    fn of(client: &Client) -> Self {
        Holder { membership: client.membership().clone(), task: client.id() }
    }

    fn check(&self, client: &Client) {
        let is_same = Arc::ptr_eq(&self.membership, client.membership()) && self.task == client.id();
        assert!(is_same, "what a client holds goes back to that client");
    }
}

impl Token<'_> {
    /// Holds it beyond this scope. Its engines must have been dropped, or detached, before.
    pub fn detach(self) -> DetachedToken {
        let detached = DetachedToken { holder: Holder::of(self.client()), replica: self.replica() };
        // Its drop would release the token.
        std::mem::forget(self);
        detached
    }
}

impl EngineLock<'_> {
    /// Holds it beyond this scope.
    pub fn detach(self) -> DetachedEngine {
        let holder = Holder::of(self.client());
        let detached = DetachedEngine { holder, lock: self.lock(), gpu: self.gpu(), engine: self.engine() };
        std::mem::forget(self);
        detached
    }
}

impl DetachedToken {
    /// Which of the tokens of all GPUs.
    pub fn replica(&self) -> ReplicaId {
        self.replica
    }
}

impl DetachedEngine {
    /// Of which GPU.
    pub fn gpu(&self) -> u16 {
        self.gpu
    }

    /// Which.
    pub fn engine(&self) -> Engine {
        self.engine
    }
}

impl Client {
    /// The token that was detached: released when dropped.
    ///
    /// # Panics
    /// If it is another client's.
    pub fn reattach(&self, detached: DetachedToken) -> Token<'_> {
        detached.holder.check(self);
        Token::new(self, detached.replica)
    }

    /// The engine that was detached: released when dropped.
    ///
    /// # Panics
    /// If it is another client's.
    pub fn reattach_engine(&self, detached: DetachedEngine) -> EngineLock<'_> {
        detached.holder.check(self);
        EngineLock::new(self, detached.lock, detached.gpu, detached.engine)
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::CopyDirection;
    use laxity_testing::TestRegistry;

    use crate::{Base, Config, LockError, Registry};

    #[test]
    fn a_detached_token_is_held_until_it_is_reattached_and_dropped() {
        let registry: TestRegistry<Registry> = TestRegistry::new("detached");
        let gpus = registry.create("detached", &Config::new(2, 1)).expect("created");
        let client = gpus.register("a", Base::Fixed(1)).expect("registered");
        let token = client.token().expect("free");
        let engine = token.copy_engine(CopyDirection::In).expect("free").detach();
        let token = token.detach();
        assert!(matches!(client.try_token(), Err(LockError::Order { .. })), "it holds one");
        let holders = |look: crate::Snapshot| {
            (look.tokens.is_held(), look.engines[0].iter().filter(|engine| engine.is_held()).count())
        };
        assert_eq!(holders(gpus.snapshot().expect("a look")), (true, 1));
        drop(client.reattach_engine(engine));
        assert_eq!(holders(gpus.snapshot().expect("a look")), (true, 0));
        drop(client.reattach(token));
        assert_eq!(holders(gpus.snapshot().expect("a look")), (false, 0));
        let again = client.token().expect("free again").detach();
        drop(client);
        assert_eq!(holders(gpus.snapshot().expect("a look")), (false, 0), "a client that is dropped holds nothing");
        drop(again);
    }

    #[test]
    #[should_panic(expected = "goes back to that client")]
    fn a_client_cannot_reattach_what_another_client_holds() {
        let registry: TestRegistry<Registry> = TestRegistry::new("detached-by-others");
        let gpus = registry.create("detached", &Config::new(2, 2)).expect("created");
        let (a, b) = (gpus.register("a", Base::Background), gpus.register("b", Base::Background));
        let (a, b) = (a.expect("registered"), b.expect("registered"));
        let detached = a.token().expect("free").detach();
        drop(b.reattach(detached));
    }

    /// The holder is the same thread: a wait that does not give up would never end.
    #[test]
    fn a_wait_ends_when_it_is_told_not_to_go_on_and_nothing_is_left_of_it() {
        let registry: TestRegistry<Registry> = TestRegistry::new("patience");
        let gpus = registry.create("patience", &Config::new(2, 1)).expect("created");
        let (a, b) = (gpus.register("a", Base::Fixed(1)), gpus.register("b", Base::Fixed(2)));
        let (a, b) = (a.expect("registered"), b.expect("registered"));
        let token = a.token().expect("free");
        let asked = std::cell::Cell::new(0);
        let keep_waiting = || {
            assert_eq!(gpus.snapshot().expect("a look").tokens.waiting.len(), 1, "it keeps its place meanwhile");
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        assert!(matches!(
            b.request_while(crate::TokenRequest::default(), &keep_waiting),
            Err(LockError::TimedOut { .. })
        ));
        assert_eq!(asked.get(), 3);
        assert!(gpus.snapshot().expect("a look").tokens.waiting.is_empty());
        drop(token);
        let token = b
            .request_while(crate::TokenRequest::default(), &|| false)
            .expect("a request that need not wait does not call the condition");
        let engine = token.engine_while(laxity_model::Engine::Execution, laxity_model::Instant::NEVER, &|| false);
        drop(engine.expect("free"));
    }
}
