//! The symbols of a loaded object, read off its dynamic section: `dlsym` of the audit's namespace does not see the
//! program's, and when programs start nothing is relocated yet.

use std::ffi::c_char;

use crate::audit::Symbol;

/// `struct link_map`, the part that is public.
#[repr(C)]
pub struct LinkMap {
    /// What is to be added to the addresses in the object's file.
    pub base: usize,
    pub name: *const c_char,
    dynamic: *const Entry,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: i64,
    value: usize,
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

impl LinkMap {
    /// The address of the symbol called `name`.
    ///
    /// # Safety
    /// The object is loaded, and has a hash table of GNU's kind.
    pub unsafe fn find(&self, name: &[u8]) -> Option<usize> {
        let (mut strings, mut symbols, mut table) = (0, 0, 0);
        let mut entry = self.dynamic;
        // SAFETY: the dynamic section ends with a tag 0.
        while unsafe { (*entry).tag } != 0 {
            // SAFETY: as above.
            let Entry { tag, value } = unsafe { entry.read() };
            // ld.so relocates these in place, on most machines.
            let address = if value < self.base { value + self.base } else { value };
            match tag {
                DT_STRTAB => strings = address,
                DT_SYMTAB => symbols = address,
                DT_GNU_HASH => table = address,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        if strings == 0 || symbols == 0 || table == 0 {
            return None;
        }
        // SAFETY: the table has four numbers, a filter, buckets, and chains.
        unsafe {
            let head = table as *const u32;
            let (buckets, first, filter) = (*head, *head.add(1), *head.add(2));
            let bucket_list = (table + 16 + filter as usize * 8) as *const u32;
            let chains = bucket_list.add(buckets as usize);
            let wanted = hash(name);
            let mut number = *bucket_list.add((wanted % buckets) as usize);
            if number < first {
                return None;
            }
            loop {
                let chained = *chains.add((number - first) as usize);
                if chained | 1 == wanted | 1 {
                    let symbol = &*(symbols as *const Symbol).add(number as usize);
                    let text = (strings + symbol.name as usize) as *const c_char;
                    let is_defined = symbol.section != 0;
                    if is_defined && std::ffi::CStr::from_ptr(text).to_bytes() == name {
                        return Some(self.base + symbol.value);
                    }
                }
                if chained & 1 == 1 {
                    return None;
                }
                number += 1;
            }
        }
    }
}

fn hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_the_c_library_is_where_dlsym_has_it() {
        assert_eq!(hash(b"printf"), 0x156b_2bb8, "the example of the format's description");
        // SAFETY: the C library is loaded, and RTLD_DI_LINKMAP (2) asks for its link map.
        let (map, expected) = unsafe {
            let handle = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            let mut map: *const LinkMap = std::ptr::null();
            assert_eq!(libc::dlinfo(handle, 2, (&raw mut map).cast()), 0);
            (map, libc::dlsym(handle, c"getpid".as_ptr()) as usize)
        };
        // SAFETY: as above.
        assert_eq!(unsafe { (*map).find(b"getpid") }, Some(expected));
        // SAFETY: as above.
        assert_eq!(unsafe { (*map).find(b"laxity_wrap_cuInit") }, None);
    }
}
