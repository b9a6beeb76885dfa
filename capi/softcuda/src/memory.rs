//! Memory that programs allocate: device memory, which is that of a soft GPU, and memory of the host.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use laxity_softgpu::Buffer;

use crate::context::Context;
use crate::event::of_gpu;
use crate::types::*;

/// A piece of memory.
#[derive(Debug)]
pub struct Allocation {
    pub start: u64,
    pub length: usize,
    pub kind: Kind,
    /// The handle of its context, and the number of its device.
    pub context: usize,
    pub device: usize,
    pub id: u64,
}

/// What it is. The memory is freed when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "kept to be dropped")]
pub enum Kind {
    Device(Buffer),
    Managed(Buffer),
    /// Of the host, for copies that do not hold up the program.
    Host {
        block: Block,
        flags: u32,
    },
    /// As above, the program's own.
    Registered {
        flags: u32,
    },
}

/// Memory of the host.
#[derive(Debug)]
pub struct Block {
    address: usize,
    layout: Layout,
}

/// By start.
static ALLOCATIONS: RwLock<BTreeMap<u64, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// What host memory is aligned to.
const PAGE: usize = 4096;

impl Allocation {
    pub fn is_device(&self) -> bool {
        matches!(self.kind, Kind::Device(_) | Kind::Managed(_))
    }

    fn new(context: &Arc<Context>, start: u64, length: usize, kind: Kind) -> Arc<Allocation> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (device, id) = (context.device.ordinal, NEXT.fetch_add(1, Ordering::Relaxed));
        Arc::new(Allocation { start, length, kind, context: context.handle() as usize, device, id })
    }

    fn add(context: &Arc<Context>, start: u64, length: usize, kind: Kind) -> Arc<Allocation> {
        let allocation = Allocation::new(context, start, length, kind);
        ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner).insert(start, allocation.clone());
        allocation
    }
}

/// Device memory of `context`.
pub fn device(context: &Arc<Context>, bytes: usize, is_managed: bool) -> Outcome<Arc<Allocation>> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let buffer = context.device.gpu()?.alloc(bytes).map_err(|error| of_gpu(&error))?;
    let start = buffer.address() as u64;
    let kind = if is_managed { Kind::Managed(buffer) } else { Kind::Device(buffer) };
    Ok(Allocation::add(context, start, bytes, kind))
}

/// Memory of the host.
pub fn host(context: &Arc<Context>, bytes: usize, flags: u32) -> Outcome<Arc<Allocation>> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let layout = Layout::from_size_align(bytes, PAGE).map_err(|_| OUT_OF_MEMORY)?;
    // SAFETY: the layout has bytes.
    let address = unsafe { alloc_zeroed(layout) } as usize;
    if address == 0 {
        return Err(OUT_OF_MEMORY);
    }
    let block = Block { address, layout };
    Ok(Allocation::add(context, address as u64, bytes, Kind::Host { block, flags }))
}

/// Memory of the program is as good as that of [`host`] from now on.
pub fn register(context: &Arc<Context>, address: u64, bytes: usize, flags: u32) -> Outcome {
    if address == 0 || bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let end = address.checked_add(bytes as u64).ok_or(INVALID_VALUE)?;
    let allocation = Allocation::new(context, address, bytes, Kind::Registered { flags });
    let mut allocations = ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    // No two overlap: the last that begins before the end is also the last that ends.
    let overlaps = |(start, last): (&u64, &Arc<Allocation>)| start + last.length as u64 > address;
    if allocations.range(..end).next_back().is_some_and(overlaps) {
        return Err(HOST_MEMORY_ALREADY_REGISTERED);
    }
    allocations.insert(address, allocation);
    Ok(())
}

/// That which `address` is in.
pub fn find(address: u64) -> Option<Arc<Allocation>> {
    let allocations = ALLOCATIONS.read().unwrap_or_else(PoisonError::into_inner);
    let (_, allocation) = allocations.range(..=address).next_back()?;
    (address - allocation.start < allocation.length as u64).then(|| allocation.clone())
}

/// That which begins at `address` and is as `is` says; it is forgotten.
pub fn remove(address: u64, is: impl Fn(&Kind) -> bool) -> Outcome<Arc<Allocation>> {
    let mut allocations = ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    let found = allocations.get(&address).filter(|allocation| is(&allocation.kind)).cloned().ok_or(INVALID_VALUE)?;
    allocations.remove(&address);
    Ok(found)
}

/// Forgets what belongs to a context that is destroyed.
pub fn forget_context(context: usize) {
    let mut allocations = ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner);
    allocations.retain(|_, allocation| allocation.context != context);
}

/// Device memory, or memory of the host that devices use: whether all `bytes` from `address` on are of one allocation.
pub fn check(address: u64, bytes: usize) -> Outcome<Arc<Allocation>> {
    let allocation = find(address).ok_or(INVALID_VALUE)?;
    let left = allocation.length as u64 - (address - allocation.start);
    if bytes as u64 <= left { Ok(allocation) } else { Err(INVALID_VALUE) }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `host` allocated it so.
        unsafe { dealloc(self.address as *mut u8, self.layout) };
    }
}
