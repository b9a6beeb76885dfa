//! What a thread has a GPU do: lock the engine and memory bandwidth, issue, wait, unlock (GPUSync's
//! pattern, with paper 004's around each operation).

use std::ops::Range;
use std::sync::Arc;

use laxity_model::{CopyDirection, Engine, Instant, Nanos};
use laxity_softgpu::{CopyOut, DeviceView, Event, GpuError, KernelResult, Stream, Wait};

use crate::device::Buffer;
use crate::error::DeviceError;
use crate::thread::DeviceThread;

impl DeviceThread {
    /// Copies `bytes` to `offset` of `buffer`, chunk by chunk if the arbitration says so.
    ///
    /// # Errors
    /// [`DeviceError`]. Bytes copied before the failure stay copied.
    pub fn copy_in(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        check(buffer, offset, bytes.len())?;
        // Threads of the soft GPU carry it out, and must own what they copy from. Not while the engine is locked.
        let owned: Arc<[u8]> = bytes.into();
        let issue = |stream: &Stream, range: Range<usize>| {
            let start = offset + range.start;
            stream.copy_in(buffer, start, Part { bytes: owned.clone(), range })
        };
        self.copy(Some(buffer), CopyDirection::In, bytes.len(), issue, |(), _| ())
    }

    /// Copies from `offset` of `buffer` to all of `bytes`, chunk by chunk if the arbitration says so.
    ///
    /// # Errors
    /// [`DeviceError`]. Bytes copied before the failure stay copied.
    pub fn copy_out(&mut self, buffer: &Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        check(buffer, offset, bytes.len())?;
        let length = bytes.len();
        let issue =
            |stream: &Stream, range: Range<usize>| stream.copy_out(buffer, offset + range.start..offset + range.end);
        let take = |copied: Vec<u8>, range: Range<usize>| bytes[range].copy_from_slice(&copied);
        self.copy(Some(buffer), CopyDirection::Out, length, issue, take)
    }

    /// Occupies a copy engine for as long as a copy of that many bytes takes by the soft GPU's rate
    /// ([`copy_time`](laxity_softgpu::Config::copy_time)), chunk by chunk if the arbitration says so. Nothing is copied.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn copy_timed(&mut self, direction: CopyDirection, bytes: usize) -> Result<(), DeviceError> {
        let issue = |stream: &Stream, range: Range<usize>| stream.copy_timed(direction, range.len());
        self.copy(None, direction, bytes, issue, |(), _| ())
    }

    /// Runs a GPU kernel: a host function that uses device memory through its view.
    ///
    /// # Errors
    /// [`DeviceError`]; [`GpuError::Failed`] with what the kernel says if it fails or panics.
    pub fn launch<K>(&mut self, kernel: K) -> Result<(), DeviceError>
    where
        K: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        self.launch_for(Nanos::ZERO, kernel)
    }

    /// As [`DeviceThread::launch`], and the execution engine is busy for `duration` at least.
    ///
    /// # Errors
    /// As [`DeviceThread::launch`].
    pub fn launch_for<K>(&mut self, duration: Nanos, kernel: K) -> Result<(), DeviceError>
    where
        K: FnOnce(&DeviceView<'_>) -> KernelResult + Send + 'static,
    {
        self.execute(|stream| stream.launch_for(duration, kernel))
    }

    /// Occupies the execution engine for `duration`; no CPU is used meanwhile.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn launch_timed(&mut self, duration: Nanos) -> Result<(), DeviceError> {
        self.execute(|stream| stream.launch_timed(duration))
    }

    /// Has `issue` issue a kernel with the execution engine locked.
    fn execute(&mut self, issue: impl FnOnce(&Stream) -> Result<Event, GpuError>) -> Result<(), DeviceError> {
        let gpu = self.occupy(None)?;
        let stream = &self.streams[usize::from(gpu)];
        if let Some(task) = &self.task {
            let _engine = self.engine_as(task, gpu, Engine::Execution)?;
            return self.complete(issue(stream)?);
        }
        let token = self.token.as_ref().map(|token| token.token());
        let _engine = token.as_ref().map(|token| token.execute_engine()).transpose()?;
        let _protection = self.protection()?;
        self.complete(issue(stream)?)
    }

    /// Waits for an operation. A job that Laxity schedules is suspended meanwhile, unless it spins.
    fn complete<O: Outstanding>(&self, operation: O) -> Result<O::Result, DeviceError> {
        let wait = self.device.wait();
        let Some(task) = self.task.as_ref().filter(|_| wait == Wait::Blocking && !operation.is_over()) else {
            return Ok(operation.end(wait)?);
        };
        task.suspend()?;
        let result = operation.end(wait);
        task.resume()?;
        Ok(result?)
    }

    /// Has `issue` copy each part with the engine locked, and `take` have the result when it is not any more.
    fn copy<O: Outstanding>(
        &mut self,
        buffer: Option<&Buffer>,
        direction: CopyDirection,
        bytes: usize,
        issue: impl Fn(&Stream, Range<usize>) -> Result<O, GpuError>,
        mut take: impl FnMut(O::Result, Range<usize>),
    ) -> Result<(), DeviceError> {
        let gpu = self.occupy(buffer.map(Buffer::gpu))?;
        let stream = &self.streams[usize::from(gpu)];
        if let Some(task) = &self.task {
            for range in chunks(bytes, self.chunk()) {
                let engine = self.engine_as(task, gpu, self.copy_engine(direction))?;
                let copied = self.complete(issue(stream, range.clone())?)?;
                drop(engine);
                take(copied, range);
            }
            return Ok(());
        }
        let Some(token) = self.token.as_ref().map(|token| token.token()) else {
            take(self.complete(issue(stream, 0..bytes)?)?, 0..bytes);
            return Ok(());
        };
        let mut chunks = token.copy_chunks(direction, bytes as u64, Instant::NEVER);
        while let Some(chunk) = chunks.next()? {
            // Within `bytes`, which was a `usize`.
            let range = chunk.range().start as usize..chunk.range().end as usize;
            let protection = self.protection()?;
            let copied = self.complete(issue(stream, range.clone())?)?;
            drop(protection);
            drop(chunk);
            take(copied, range);
        }
        Ok(())
    }
}

/// The chunks of a copy, of at most so many bytes; one for a copy of nothing.
fn chunks(bytes: usize, chunk: Option<usize>) -> impl Iterator<Item = Range<usize>> {
    let chunk = chunk.unwrap_or(bytes).max(1);
    (0..bytes.max(1)).step_by(chunk).map(move |start| start..bytes.min(start.saturating_add(chunk)))
}

/// An operation that was issued.
trait Outstanding {
    /// What it answers.
    type Result;

    /// Whether it is complete.
    fn is_over(&self) -> bool;

    /// Waits until it is.
    fn end(self, wait: Wait) -> Result<Self::Result, GpuError>;
}

impl Outstanding for Event {
    type Result = ();

    fn is_over(&self) -> bool {
        self.is_complete()
    }

    fn end(self, wait: Wait) -> Result<(), GpuError> {
        self.wait(wait)
    }
}

impl Outstanding for CopyOut {
    type Result = Vec<u8>;

    fn is_over(&self) -> bool {
        self.is_complete()
    }

    fn end(self, wait: Wait) -> Result<Vec<u8>, GpuError> {
        self.wait(wait)
    }
}

/// A part of bytes that several operations copy from.
struct Part {
    bytes: Arc<[u8]>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Whether that many bytes from `offset` on are within `buffer`, before anything is waited for.
fn check(buffer: &Buffer, offset: usize, bytes: usize) -> Result<(), DeviceError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= buffer.len() => Ok(()),
        end => Err(GpuError::Range { start: offset, end: end.unwrap_or(usize::MAX), length: buffer.len() }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_copy_and_the_last_one_is_what_is_left() {
        let of = |bytes, chunk| chunks(bytes, chunk).map(|range| (range.start, range.end)).collect::<Vec<_>>();
        assert_eq!(of(10, Some(4)), [(0, 4), (4, 8), (8, 10)]);
        assert_eq!(of(8, Some(4)), [(0, 4), (4, 8)]);
        assert_eq!((of(10, None), of(0, Some(4))), (vec![(0, 10)], vec![(0, 0)]));
    }
}
