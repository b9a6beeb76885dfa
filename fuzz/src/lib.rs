//! Fuzz targets: arbitrary bytes, and arbitrary edits of valid bytes, go into the parsers of texts and traces and into
//! the readers of shared memory.
//!
//! Each target is a test. `make test` gives it its committed inputs (`__fuzz__/TARGET/corpus`) and a thousand random ones
//! (fewer where one takes long); a failure prints the input and the seed that repeats it. `make fuzz EACH=3600` has libFuzzer
//! find inputs that reach more, with the stable compiler (`scripts/fuzz.py`, decision 82). A target asserts that nothing
//! panics and that what was read can be used: written and read again, checked, drawn, measured. The protocol of soft GPUs and
//! the frames of channels have theirs in `laxity-softgpu` and `laxity-graph`, beside the types that they decode.
#![forbid(unsafe_code)]

/// Frames `payload` as the trace format does: its length, its CRC-32, and then itself.
///
/// Without it almost every random change would end at the checksum, and no target would reach the decoder.
/// Source: `docs/reference/trace-format.md`, *Layout*.
pub fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("fuzzers make small inputs");
    let mut frame = Vec::with_capacity(payload.len() + 8);
    frame.extend(length.to_le_bytes());
    frame.extend(crc32fast::hash(payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// Takes `input` as edits of `bytes`: three bytes each, a place (16 bits, scaled to the length) and what to write there.
///
/// The first byte of an edit's place is its high one, so that a fuzzer that increments the last byte changes the value.
pub fn edit(bytes: &mut [u8], input: &[u8]) {
    for edit in input.chunks_exact(3) {
        let place = usize::from(u16::from_be_bytes([edit[0], edit[1]]));
        let at = place * bytes.len() / (usize::from(u16::MAX) + 1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = edit[2];
        }
    }
}
