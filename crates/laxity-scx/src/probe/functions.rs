//! The functions of the kernel that the scheduler calls, by the kernel's own description of them.

use serde::{Deserialize, Serialize};

use super::{Check, check};

/// How the kernel describes the functions that the scheduler calls. The loader finds out, as it has libbpf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Functions {
    /// Those that are there and take what the scheduler gives them.
    pub fitting: Vec<String>,
    /// Those that the kernel does not have.
    pub missing: Vec<String>,
    /// Those that are described with an argument which only the kernel itself can give. An old pahole left it in
    /// (dwarves before 1.31, kernels from 7.1 on), and such a kernel takes no scheduler at all.
    pub unhidden: Vec<String>,
    /// Those that take other arguments.
    pub different: Vec<String>,
}

impl Functions {
    /// As one of the needs.
    pub fn check(&self) -> Check {
        let Functions { fitting, missing, unhidden, different } = self;
        let name = "functions";
        if !unhidden.is_empty() {
            let found = format!("this kernel's BTF describes {} wrongly", unhidden.join(", "));
            let remedy = "boot another build of the kernel: this one was made with a pahole older than 1.31, and takes no \
                          scheduler of sched_ext at all";
            return check(name, false, found, remedy);
        }
        if !missing.is_empty() {
            let found = format!("this kernel has no {}", missing.join(", no "));
            return check(name, false, found, "boot Linux 6.12 or newer, or get a Laxity that knows this kernel");
        }
        if !different.is_empty() {
            let found = format!("{} of this kernel take other arguments", different.join(", "));
            return check(name, false, found, "get a Laxity that knows this kernel, or boot one that it knows");
        }
        check(name, true, format!("all {} that the scheduler calls", fitting.len()), "")
    }
}
