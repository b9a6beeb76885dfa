//! The layer is never unmapped: a driver may call it back, and its threads may run, when a loader has closed it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
