//! The state of a task on soft GPUs: real bytes, which its kernels write and which move with it.

use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::{CopyDirection, GpuId, MigrationPath, Nanos};
use laxity_softgpu::{Buffer, Event, GpuError, KernelResult, Stream};

/// At both ends of the bytes: how many kernels have written them.
const MARK: usize = size_of::<u64>();

/// The state of a task.
pub(super) struct State {
    path: MigrationPath,
    /// Memory for it on each GPU.
    buffers: Vec<Buffer>,
    /// The copy in host memory, for the next GPU.
    host: Arc<Mutex<Vec<u8>>>,
    /// How many kernels were issued.
    kernels: u64,
}

impl State {
    pub fn new(path: MigrationPath, buffers: &[Buffer]) -> State {
        State { path, buffers: buffers.to_vec(), host: Arc::default(), kernels: 0 }
    }

    /// A kernel on `gpu` for `span` that works upon the state which the last kernel left, wherever that ran.
    pub fn compute(&mut self, stream: &Stream, gpu: GpuId, span: Nanos) -> Result<Event, GpuError> {
        let buffer = self.buffers[gpu.index()].clone();
        let before = self.kernels;
        self.kernels += 1;
        stream.launch_for(span, move |view| {
            let mut bytes = view.write(&buffer, 0..buffer.len())?;
            work(&mut bytes, before)
        })
    }

    /// A copy on `gpu` for `span` that is part of a move: from the GPU that was `left` or from host memory, or there.
    pub fn move_with(
        &self,
        stream: &Stream,
        gpu: GpuId,
        (left, direction): (Option<GpuId>, CopyDirection),
        span: Nanos,
    ) -> Result<Event, GpuError> {
        let buffer = self.buffers[gpu.index()].clone();
        if let (MigrationPath::Peer, Some(left)) = (self.path, left) {
            return stream.copy_from_peer(&self.buffers[left.index()], &buffer, span);
        }
        let host = Arc::clone(&self.host);
        stream.copy_for(direction, span, move |view| {
            let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
            match direction {
                CopyDirection::Out => *host = view.read(&buffer, 0..buffer.len())?.to_vec(),
                CopyDirection::In => view.write(&buffer, 0..buffer.len())?.copy_from_slice(&host),
            }
            Ok(())
        })
    }
}

/// What a kernel does with the state, which so many kernels wrote before.
fn work(bytes: &mut [u8], before: u64) -> KernelResult {
    for end in [0, bytes.len() - MARK] {
        let mark = &mut bytes[end..end + MARK];
        let found = u64::from_le_bytes((&*mark).try_into().expect("as many bytes"));
        if found != before {
            return Err(format!(
                "the state on its GPU is of kernel {found} of the task, and kernel {before} was the last"
            )
            .into());
        }
        mark.copy_from_slice(&(before + 1).to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_works_upon_what_the_last_one_left_or_fails() {
        let mut bytes = vec![0; 40];
        assert!(work(&mut bytes, 0).is_ok() && work(&mut bytes, 1).is_ok());
        let stale = work(&mut [0; 40], 2).expect_err("two kernels wrote elsewhere").to_string();
        assert_eq!(stale, "the state on its GPU is of kernel 0 of the task, and kernel 2 was the last");
        // Half of it was copied.
        bytes[32] = 0;
        assert!(work(&mut bytes, 2).is_err());
    }
}
