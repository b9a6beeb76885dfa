//! The trace that Perfetto's own bindings read in `tests/python/test_perfetto_decodes.py`.

use super::bytes;
use super::fixtures::*;

/// Paper 002, Fig. 1(c), and below it what a trace with misses and a suspension looks like.
const GOLDEN: [(&str, &[u8]); 2] =
    [("figure_1c", include_bytes!("figure_1c.perfetto-trace")), ("misses", include_bytes!("misses.perfetto-trace"))];

fn current() -> [(&'static str, Vec<u8>); 2] {
    let (header, records) = suspension_and_misses();
    [("figure_1c", bytes(&figure_1_header(), &figure_1c())), ("misses", bytes(&header, &records))]
}

#[test]
fn the_export_is_byte_for_byte_what_perfettos_bindings_were_shown() {
    for ((name, golden), (_, now)) in GOLDEN.into_iter().zip(current()) {
        assert!(
            golden == now,
            "{name}: the export changed ({} bytes, before {}); if that is meant, run `cargo test -p laxity-trace --test \
             perfetto regenerate -- --ignored`, then `pytest tests/python/test_perfetto_decodes.py`",
            now.len(),
            golden.len(),
        );
    }
}

#[test]
#[ignore = "rewrites the files that the test above compares with"]
#[allow(clippy::disallowed_methods, reason = "a tool that writes files, not a test of the pure crate")]
fn regenerate() {
    for (name, bytes) in current() {
        let path = format!("{}/tests/perfetto/{name}.perfetto-trace", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, bytes).expect("the source tree can be written");
    }
}
