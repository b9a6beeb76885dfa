//! What a thread has a GPU do: lock the engine and memory bandwidth, issue, wait, unlock (GPUSync's
//! pattern, with paper 004's around each operation).

use std::ops::Range;
use std::sync::Arc;

use laxity_model::{CopyDirection, Instant, Nanos};
use laxity_softgpu::{DeviceView, Event, GpuError, KernelResult, Stream};

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
        let wait = self.device.wait();
        // Threads of the soft GPU carry it out, and must own what they copy from. Not while the engine is locked.
        let owned: Arc<[u8]> = bytes.into();
        let issue = |stream: &Stream, range: Range<usize>| {
            let start = offset + range.start;
            let part = Part { bytes: owned.clone(), range };
            Ok(stream.copy_in(buffer, start, part)?.wait(wait)?)
        };
        self.copy(Some(buffer), CopyDirection::In, bytes.len(), issue, |(), _| ())
    }

    /// Copies from `offset` of `buffer` to all of `bytes`, chunk by chunk if the arbitration says so.
    ///
    /// # Errors
    /// [`DeviceError`]. Bytes copied before the failure stay copied.
    pub fn copy_out(&mut self, buffer: &Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        check(buffer, offset, bytes.len())?;
        let (wait, length) = (self.device.wait(), bytes.len());
        let issue = |stream: &Stream, range: Range<usize>| {
            let part = offset + range.start..offset + range.end;
            Ok(stream.copy_out(buffer, part)?.wait(wait)?)
        };
        let take = |copied: Vec<u8>, range: Range<usize>| bytes[range].copy_from_slice(&copied);
        self.copy(Some(buffer), CopyDirection::Out, length, issue, take)
    }

    /// Occupies a copy engine for as long as a copy of that many bytes takes by the soft GPU's rate
    /// ([`copy_time`](laxity_softgpu::Config::copy_time)), chunk by chunk if the arbitration says so. Nothing is copied.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn copy_timed(&mut self, direction: CopyDirection, bytes: usize) -> Result<(), DeviceError> {
        let wait = self.device.wait();
        let issue = |stream: &Stream, range: Range<usize>| Ok(stream.copy_timed(direction, range.len())?.wait(wait)?);
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
        let token = self.token.as_ref().map(|token| token.token());
        let _engine = token.as_ref().map(|token| token.execute_engine()).transpose()?;
        let _protection = self.protection()?;
        Ok(issue(&self.streams[usize::from(gpu)])?.wait(self.device.wait())?)
    }

    /// Has `issue` copy each part with the engine locked, and `take` have the result when it is not any more.
    fn copy<T>(
        &mut self,
        buffer: Option<&Buffer>,
        direction: CopyDirection,
        bytes: usize,
        issue: impl Fn(&Stream, Range<usize>) -> Result<T, DeviceError>,
        mut take: impl FnMut(T, Range<usize>),
    ) -> Result<(), DeviceError> {
        let gpu = self.occupy(buffer.map(Buffer::gpu))?;
        let stream = &self.streams[usize::from(gpu)];
        let Some(token) = self.token.as_ref().map(|token| token.token()) else {
            take(issue(stream, 0..bytes)?, 0..bytes);
            return Ok(());
        };
        let mut chunks = token.copy_chunks(direction, bytes as u64, Instant::NEVER);
        while let Some(chunk) = chunks.next()? {
            // Within `bytes`, which was a `usize`.
            let range = chunk.range().start as usize..chunk.range().end as usize;
            let protection = self.protection()?;
            let copied = issue(stream, range.clone())?;
            drop(protection);
            drop(chunk);
            take(copied, range);
        }
        Ok(())
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
