//! The trace that Perfetto's own bindings read in `tests/python/test_perfetto_decodes.py`.

use super::bytes;
use super::fixtures::*;
use super::gpus::*;

/// Paper 002, Fig. 1(c); a trace with misses and a suspension; paper 000, Fig. 1, under standard Linux and under klmirqd;
/// a trace with engines, locks and tokens.
const GOLDEN: [(&str, &[u8]); 5] = [
    ("figure_1c", include_bytes!("figure_1c.perfetto-trace")),
    ("misses", include_bytes!("misses.perfetto-trace")),
    ("inversion_slih", include_bytes!("inversion_slih.perfetto-trace")),
    ("inversion_klmirqd", include_bytes!("inversion_klmirqd.perfetto-trace")),
    ("pipeline", include_bytes!("pipeline.perfetto-trace")),
];

fn current() -> [(&'static str, Vec<u8>); 5] {
    let export = |(header, records): (laxity_trace::TraceHeader, Vec<laxity_trace::Record>)| bytes(&header, &records);
    [
        ("figure_1c", bytes(&figure_1_header(), &figure_1c())),
        ("misses", export(suspension_and_misses())),
        ("inversion_slih", export(inversion_slih())),
        ("inversion_klmirqd", export(inversion_klmirqd())),
        ("pipeline", export(pipeline())),
    ]
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
