//! Which functions the scheduler calls, and how the kernel describes them.

use std::ffi::OsStr;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Enum, Enum64, Func, FuncProto};
use libbpf_rs::set_print;

use crate::probe::Functions;

/// Where Linux describes its types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Functions that Linux 6.12 has by the second name. The scheduler calls whichever is there: `bpf/sched_ext.h`.
const RENAMED: [(&str, &str); 3] = [
    ("scx_bpf_dsq_insert", "scx_bpf_dispatch"),
    ("scx_bpf_dsq_insert_vtime", "scx_bpf_dispatch_vtime"),
    ("scx_bpf_dsq_move_to_local", "scx_bpf_consume"),
];

/// Whether the kernel described in `kernel` keeps threads that must not leave their CPU from a scheduler which does not ask for them.
/// Older ones hand over all.
///
/// # Errors
/// Text, if the file has no BTF that can be read.
pub fn keeps_threads(kernel: &Path) -> Result<bool, String> {
    const FLAG: &str = "SCX_OPS_ENQ_MIGRATION_DISABLED";
    set_print(None);
    let kernel = Btf::from_path(kernel).map_err(|error| format!("{}: {error:#}", kernel.display()))?;
    let is_it = |name: Option<&OsStr>| name.is_some_and(|name| name == FLAG);
    // By an older pahole its numbers have 32 bits.
    let is_wide = kernel.type_by_name::<Enum64<'_>>("scx_ops_flags").map(|flags| flags.iter().any(|it| is_it(it.name)));
    let is_narrow = || Some(kernel.type_by_name::<Enum<'_>>("scx_ops_flags")?.iter().any(|it| is_it(it.name)));
    Ok(is_wide.or_else(is_narrow).unwrap_or(true))
}

/// Compares the functions that the object in `object` calls with those in `kernel`, which is [`KERNEL_TYPES`] or another
/// file with BTF.
///
/// # Errors
/// Text, if a file has no BTF that can be read.
pub fn functions(object: &Path, kernel: &Path) -> Result<Functions, String> {
    // Its words are in the error.
    set_print(None);
    let read = |path: &Path| Btf::from_path(path).map_err(|error| format!("{}: {error:#}", path.display()));
    let (ours, theirs) = (read(object)?, read(kernel)?);
    let calls: DataSec<'_> =
        ours.type_by_name(".ksyms").ok_or_else(|| format!("{}: it calls nothing of a kernel", object.display()))?;
    let mut found = Functions::default();
    for call in calls.iter() {
        // A variable of the kernel is none of them.
        let Some(function) = ours.type_by_id::<Func<'_>>(call.ty) else { continue };
        let name = function.name().unwrap_or_default().to_string_lossy().into_owned();
        let has = |name: &str| theirs.type_by_name::<Func<'_>>(name).is_some();
        let is_other = |&(new, old): &(&str, &str)| {
            (name == new && !has(new) && has(old)) || (name == old && (has(new) || !has(old)))
        };
        if RENAMED.iter().any(is_other) {
            continue;
        }
        let (wanted, there) = (arguments(function), theirs.type_by_name::<Func<'_>>(&name));
        let list = match there.map(arguments) {
            None => &mut found.missing,
            Some(there) if there.len() == wanted.len() => &mut found.fitting,
            Some(there) if there.len() == wanted.len() + 1 && there.last().is_some_and(|last| last == "aux") => {
                &mut found.unhidden
            }
            Some(_) => &mut found.different,
        };
        list.push(name);
    }
    Ok(found)
}

/// The names of what a function takes.
fn arguments(function: Func<'_>) -> Vec<String> {
    let prototype = function.next_type().and_then(|next| FuncProto::try_from(next).ok());
    let name = |name: Option<&OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    prototype.map(|prototype| prototype.iter().map(|argument| name(argument.name)).collect()).unwrap_or_default()
}
