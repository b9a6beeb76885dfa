//! What a client was granted: a token, and engines with it.
//!
//! The pattern (GPUSync): take a token; for each operation lock the engine, issue the operation, wait suspended until it
//! is complete, unlock; at the end of the job drop the token.

use std::ops::Range;

use laxity_model::{CopyDirection, Engine, Instant, LockId, ReplicaId};

use crate::client::Client;
use crate::config::TOKEN;
use crate::request::{LockError, Resource, TokenRequest};

/// The right to use a GPU, released when dropped.
#[derive(Debug)]
#[must_use = "the token is released at once"]
pub struct Token<'a> {
    client: &'a Client,
    replica: ReplicaId,
}

/// An engine of a GPU, released when dropped.
#[derive(Debug)]
#[must_use = "the engine is released at once"]
pub struct EngineLock<'a> {
    client: &'a Client,
    lock: LockId,
    gpu: u16,
    engine: Engine,
}

/// The engines that a copy between two GPUs occupies, released when dropped.
#[derive(Debug)]
#[must_use = "the engines are released at once"]
pub struct PeerCopy<'a> {
    /// Of the GPU that is copied from, out, and of the token's, in.
    engines: [EngineLock<'a>; 2],
}

/// A copy in chunks: the engine is locked for each anew, so that a more urgent copy waits for one chunk at most.
#[derive(Debug)]
pub struct CopyChunks<'a> {
    token: &'a Token<'a>,
    direction: CopyDirection,
    done: u64,
    bytes: u64,
    chunk: u64,
    deadline: Instant,
}

/// A part of a copy, and the engine for it, released when dropped.
#[derive(Debug)]
#[must_use = "the engine is released at once"]
pub struct Chunk<'a> {
    engine: EngineLock<'a>,
    range: Range<u64>,
}

impl<'a> Token<'a> {
    pub(crate) fn new(client: &'a Client, replica: ReplicaId) -> Self {
        Token { client, replica }
    }

    /// The GPU.
    pub fn gpu(&self) -> u16 {
        self.replica.0 % self.client.shared().config.gpus
    }

    /// Which of the tokens of all GPUs.
    pub fn replica(&self) -> ReplicaId {
        self.replica
    }

    /// Waits for the execution engine.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn execute_engine(&self) -> Result<EngineLock<'_>, LockError> {
        self.engine(Engine::Execution, Instant::NEVER)
    }

    /// Waits for the engine that copies in `direction`.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn copy_engine(&self, direction: CopyDirection) -> Result<EngineLock<'_>, LockError> {
        self.engine(self.client.shared().config.copy_engine(direction), Instant::NEVER)
    }

    /// Waits for `engine` until `deadline`; [`Instant::ZERO`] not to wait at all.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn engine(&self, engine: Engine, deadline: Instant) -> Result<EngineLock<'_>, LockError> {
        self.engine_of(self.gpu(), engine, deadline, None)
    }

    /// As [`Token::engine`], but waits only as long as `keep_waiting` answers yes: see [`Client::request_while`].
    ///
    /// # Errors
    /// [`LockError`]; [`LockError::TimedOut`] also if `keep_waiting` answered no.
    pub fn engine_while(
        &self,
        engine: Engine,
        deadline: Instant,
        keep_waiting: &dyn Fn() -> bool,
    ) -> Result<EngineLock<'_>, LockError> {
        self.engine_of(self.gpu(), engine, deadline, Some(keep_waiting))
    }

    /// Waits for the engines for a copy from the GPU `from` to this one, in the order of GPUs, which is the same for
    /// all.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn peer_copy(&self, from: u16, deadline: Instant) -> Result<PeerCopy<'_>, LockError> {
        let config = &self.client.shared().config;
        if from >= config.gpus {
            return Err(LockError::NoSuchGpu { gpu: from, gpus: config.gpus });
        }
        if from == self.gpu() {
            return Err(LockError::SameGpu { gpu: from });
        }
        let (out, into) = (config.copy_engine(CopyDirection::Out), config.copy_engine(CopyDirection::In));
        let engines = if from < self.gpu() {
            let source = self.engine_of(from, out, deadline, None)?;
            [source, self.engine_of(self.gpu(), into, deadline, None)?]
        } else {
            let target = self.engine_of(self.gpu(), into, deadline, None)?;
            [self.engine_of(from, out, deadline, None)?, target]
        };
        Ok(PeerCopy { engines })
    }

    /// A copy of `bytes` bytes in chunks of the size that is configured, each of which waits for its engine until
    /// `deadline`.
    ///
    /// ```no_run
    /// # use laxity_gpu::*;
    /// # use laxity_model::{CopyDirection, Instant};
    /// # fn copy(token: &Token<'_>, issue: impl Fn(std::ops::Range<u64>)) -> Result<(), LockError> {
    /// let mut chunks = token.copy_chunks(CopyDirection::In, 100 << 20, Instant::NEVER);
    /// while let Some(chunk) = chunks.next()? {
    ///     issue(chunk.range()); // and wait until it is complete
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_chunks(&self, direction: CopyDirection, bytes: u64, deadline: Instant) -> CopyChunks<'_> {
        let chunk = self.client.shared().config.chunk().unwrap_or(bytes).max(1);
        CopyChunks { token: self, direction, done: 0, bytes, chunk, deadline }
    }

    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    // Inlined, as all of this is for a token: an engine is locked for every operation.
    #[inline]
    fn engine_of(
        &self,
        gpu: u16,
        engine: Engine,
        deadline: Instant,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<EngineLock<'_>, LockError> {
        let client = self.client;
        let what = Resource::Engine { gpu, engine };
        let lock = client.shared().config.engine_lock(gpu, engine);
        if client.engines.borrow().last().is_some_and(|&last| last >= lock) {
            return Err(LockError::Order { what });
        }
        client.check()?;
        client.acquire(lock, TokenRequest { deadline, ..TokenRequest::default() }, what, keep_waiting)?;
        Ok(EngineLock { client, lock, gpu, engine })
    }
}

impl<'a> EngineLock<'a> {
    pub(crate) fn new(client: &'a Client, lock: LockId, gpu: u16, engine: Engine) -> Self {
        EngineLock { client, lock, gpu, engine }
    }

    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    pub(crate) fn lock(&self) -> LockId {
        self.lock
    }

    /// Of which GPU.
    pub fn gpu(&self) -> u16 {
        self.gpu
    }

    /// Which.
    pub fn engine(&self) -> Engine {
        self.engine
    }
}

impl<'a> PeerCopy<'a> {
    /// The engine of the GPU that is copied from, and that of the one copied to.
    pub fn engines(&self) -> &[EngineLock<'a>; 2] {
        &self.engines
    }
}

impl CopyChunks<'_> {
    /// Waits for the engine for the next chunk; `None` if all was copied. The chunk before must be dropped by then.
    ///
    /// # Errors
    /// [`LockError`]; may be called again.
    #[expect(clippy::should_implement_trait, reason = "a chunk is dropped before the next, which iterators cannot say")]
    pub fn next(&mut self) -> Result<Option<Chunk<'_>>, LockError> {
        if self.done == self.bytes {
            return Ok(None);
        }
        let engine = self.token.client.shared().config.copy_engine(self.direction);
        let engine = self.token.engine(engine, self.deadline)?;
        let range = self.done..self.done + self.chunk.min(self.bytes - self.done);
        self.done = range.end;
        Ok(Some(Chunk { engine, range }))
    }
}

impl Chunk<'_> {
    /// The bytes, counted from the start of the copy.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The engine.
    pub fn engine(&self) -> &EngineLock<'_> {
        &self.engine
    }
}

impl Drop for Token<'_> {
    #[inline]
    fn drop(&mut self) {
        self.client.release(TOKEN, self.replica);
    }
}

impl Drop for EngineLock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.client.release(self.lock, ReplicaId(0));
    }
}
