//! The functions of `bpf/native.c`, in two builds.

/// The memory of a core: its size and layout are C's business.
pub type Memory = *mut u64;

/// Declares the functions of a build, and a table of them.
macro_rules! builds {
    ($($table:ident: $prefix:literal { $($name:ident: fn($($argument:ident: $kind:ty),*) -> $result:ty;)* })*) => {$(
        pub mod $table {
            use super::{Functions, Memory};

            unsafe extern "C" {
                $(#[link_name = concat!($prefix, stringify!($name))] fn $name($($argument: $kind),*) -> $result;)*
            }

            /// The functions of this build.
            pub static FUNCTIONS: Functions = Functions { $($name),* };
        }
    )*};
}

/// The same functions for each build.
macro_rules! functions {
    ($($name:ident: fn($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        /// A build's functions. Each takes the memory of a core that `init` has filled.
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument: $kind),*) -> $result,)*
        }

        builds! {
            whole: "laxity_core_" { $($name: fn($($argument: $kind),*) -> $result;)* }
            breakable: "laxity_mutant_" { $($name: fn($($argument: $kind),*) -> $result;)* }
        }
    };
}

functions! {
    size: fn() -> u64;
    init: fn(core: Memory, tasks: u32, cpus: u32, rule: u32, invocation: u32, queue: u32, mutant: u32) -> i32;
    set_rank: fn(core: Memory, task: u32, level: u64, position: u32) -> i32;
    release: fn(core: Memory, task: u32, major: u64) -> i32;
    complete: fn(core: Memory, cpu: u32, task: u32) -> i32;
    suspend: fn(core: Memory, cpu: u32, task: u32) -> i32;
    resume: fn(core: Memory, task: u32) -> i32;
    prioritize: fn(core: Memory, task: u32, major: u64, tie: u32) -> i32;
    lead: fn(core: Memory, owner: u32, major: u64, tie: u32) -> i32;
    wake: fn(core: Memory, thread: u32, owner: u32, major: u64, tie: u32) -> i32;
    tick: fn(core: Memory, cpu: u32, quantum: u64) -> i32;
    switch: fn(core: Memory, cpu: u32, task: u32) -> i32;
    enter: fn(core: Memory, task: u32) -> i32;
    exit: fn(core: Memory, task: u32) -> i32;
    decide: fn(core: Memory) -> u64;
    round: fn(core: Memory) -> u64;
    kicks: fn(core: Memory, changed: u64) -> u64;
    next: fn(core: Memory, cpu: u32) -> u32;
    linked: fn(core: Memory, cpu: u32) -> u32;
    claim: fn(core: Memory, task: u32, from: u32) -> u64;
    put_early: fn(core: Memory, task: u32, claimed: u64, cpu: u32, major: u64, tie: u32) -> u64;
    arrive_early: fn(core: Memory, task: u32, from: u32, cpu: u32, major: u64, tie: u32) -> u64;
    publish: fn(core: Memory, task: u32, claimed: u64, cpu: u32, major: u64, tie: u32) -> u64;
    interfere: fn(core: Memory, matches: u32) -> ();
    overtakes: fn(core: Memory, bracket: u32, at: u32) -> i32;
    expect: fn(core: Memory, leaf: u64) -> ();
    end_early: fn(core: Memory, task: u32) -> ();
    first: fn(core: Memory) -> u32;
    times_size: fn() -> u64;
    times_set: fn(times: Memory, task: u32, time: u64, keeps: u32) -> ();
    times_first: fn(times: Memory) -> u64;
    times_take: fn(times: Memory, now: u64) -> u32;
    fair_weight: fn(nice: u32) -> u64;
    fair_span: fn(executed: u64, weight: u64) -> u64;
    fair_punishment: fn(lost: u64, punishment: u64) -> u64;
    fair_advance: fn(fair: Memory, chosen: u64, now: u64) -> ();
    fair_place: fn(fair: Memory, virtual_time: u64) -> u64;
    server_begin: fn(server: Memory, period: u64, now: u64) -> ();
    server_charge: fn(server: Memory, period: u64, used: u64, now: u64) -> i32;
}
