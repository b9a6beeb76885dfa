//! Which functions the scheduler calls, and how the kernel describes them.

use std::ffi::OsStr;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Func, FuncProto};
use libbpf_rs::set_print;

use crate::probe::Functions;

/// Where Linux describes its types.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

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
