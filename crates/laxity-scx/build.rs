//! The policy core of `bpf/`, compiled natively: as it is, and with rules that tests can break.

fn main() {
    let sources = "../../bpf";
    println!("cargo:rerun-if-changed={sources}");
    for (prefix, is_breakable) in [("laxity_core_", false), ("laxity_mutant_", true)] {
        let mut build = cc::Build::new();
        build.file(format!("{sources}/native.c")).define("LAXITY_PREFIX", prefix);
        build.std("c11").flag("-ffreestanding").warnings(true).extra_warnings(true).opt_level(2);
        if is_breakable {
            build.define("LAXITY_MUTANTS", None);
        }
        build.compile(&format!("{prefix}native"));
    }
}
