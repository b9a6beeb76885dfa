//! The header that is shipped is the one that the sources say.

use std::fs;
use std::path::Path;

/// In the order in which a reader meets them.
const SOURCES: &[&str] = &[
    "result",
    "error",
    "registry",
    "spec",
    "pipeline",
    "graph",
    "user_data",
    "node",
    "object",
    "schedule",
    "recording",
    "gpu",
    "device",
    "budget",
    "kernel",
    "vx",
    "vx_job",
    "vx_run",
];

const BEGINNING: &str = "\
// Laxity for C: live graphs, threads and processes that exchange tokens and data over named graphs in shared memory; and
// GPUs that processes share.
//
// Made from capi/src: edit that, and run `LAXITY_BLESS=1 cargo test -p laxity-capi --test header`.
//
// Results   Every function that can fail returns a laxity_result, and laxity_last_error() has the details: a message,
//           the node, the edge and the process in question. Results that it gives through pointers are NULL if it
//           failed, or not written.
// Handles   Pointers to structs without a definition. Whoever got one releases it, once, through the address of the
//           variable that holds it, which is NULL afterwards; releasing NULL does nothing. Copies of it are then
//           invalid. NULL and handles of another type are refused. A released handle is refused where memory still
//           tells; do not count on it. Handles may be released in any order.
// Threads   Registries, graphs, descriptions and recordings may be used by many threads at once, a node and its job by
//           one at a time: a second one gets LAXITY_ERROR_BUSY. A client of GPUs, and a thread of a device,
//           belongs to the thread that registered it; its budget is for any thread.
// Texts     UTF-8 that ends with NUL. Those passed are copied; those returned are the library's.
// Processes All are trusted with the memory that they share. A child made by fork() attaches by itself, or executes
//           another program.";

const DEFINITIONS: &str = "
// As a time-out: wait for ever.
#define LAXITY_FOREVER UINT64_MAX";

fn generated() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("it is a configuration");
    config.header = Some(BEGINNING.to_owned());
    config.after_includes = Some(DEFINITIONS.to_owned());
    let builder = cbindgen::Builder::new().with_config(config);
    let sources = SOURCES.iter().map(|name| folder.join(format!("src/{name}.rs")));
    let bindings = sources.fold(builder, cbindgen::Builder::with_src).generate().expect("the sources are Rust");
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/laxity.h");
    let generated = generated();
    if std::env::var_os("LAXITY_BLESS").is_some() {
        fs::write(&path, &generated).expect("it can be written");
    }
    let shipped = fs::read_to_string(&path).unwrap_or_default();
    let differ = |(_, (shipped, generated)): &(usize, (&str, &str))| shipped != generated;
    let first = shipped.lines().zip(generated.lines()).enumerate().find(differ);
    assert!(
        shipped == generated,
        "include/laxity.h is not what the sources say, first at {first:?}; run this test with LAXITY_BLESS=1"
    );
}
