//! Gives the shared library the name under which programs look for it when they start: until 1.0 a minor version may
//! break them, so the name has it.

fn main() {
    let number = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("cargo sets it");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblaxity.so.{}.{}", number("MAJOR"), number("MINOR"));
    println!("cargo:rerun-if-changed=build.rs");
}
