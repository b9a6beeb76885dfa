//! The numbers of the kinds of records.

/// Kinds of records, the low five bits of a tag. A number is never given another meaning.
pub mod kind {
    pub const RELEASE: u8 = 0;
    pub const READY: u8 = 1;
    pub const LINK: u8 = 2;
    pub const UNLINK: u8 = 3;
    pub const DISPATCH: u8 = 4;
    pub const PREEMPT: u8 = 5;
    pub const SUSPEND: u8 = 6;
    pub const RESUME: u8 = 7;
    pub const COMPLETE: u8 = 8;
    pub const NON_PREEMPTIVE_BEGIN: u8 = 9;
    pub const NON_PREEMPTIVE_END: u8 = 10;
    pub const OVERHEAD: u8 = 11;
    pub const LOCK_WAIT: u8 = 12;
    pub const CACHE_DELAY: u8 = 13;
    pub const IPI: u8 = 14;
    pub const END: u8 = 15;
    pub const ENGINE_BEGIN: u8 = 16;
    pub const ENGINE_END: u8 = 17;
    pub const INTERRUPT: u8 = 18;
    pub const BOTTOM_HALF_BEGIN: u8 = 19;
    pub const BOTTOM_HALF_END: u8 = 20;
    pub const SERVE: u8 = 21;
    pub const REQUEST: u8 = 22;
    pub const GRANT: u8 = 23;
    pub const UNLOCK: u8 = 24;
    pub const WITHDRAW: u8 = 25;
    pub const PRIORITY: u8 = 26;
    pub const PRODUCE: u8 = 27;
    pub const CONSUME: u8 = 28;
    pub const SPIN_BEGIN: u8 = 29;
    pub const SPIN_END: u8 = 30;
    /// The kind is in the byte after the time, one of [`super::extended`].
    pub const EXTENDED: u8 = 31;
    /// The bits of a tag that hold the kind.
    pub const MASK: u8 = 0x1f;
}

/// Kinds for which the tag has no room: they are rare.
pub mod extended {
    pub const REPLENISH: u8 = 32;
    pub const THROTTLE: u8 = 33;
    pub const UNTHROTTLE: u8 = 34;
    pub const REGULATE: u8 = 35;
    pub const ENGINE_RATE: u8 = 36;
    pub const READ: u8 = 37;
    pub const STOLEN: u8 = 38;
    pub const ENGINE_OPERATION: u8 = 39;
    pub const OUTSIDE: u8 = 40;
    pub const OUTSIDER_NAME: u8 = 41;
    pub const OUTSIDER_THREAD: u8 = 42;
    pub const OUTSIDERS_LOST: u8 = 43;
}
