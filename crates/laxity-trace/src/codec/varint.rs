//! LEB128: seven bits a byte, least significant first, the top bit set on all but the last byte.

use super::room::Room;

/// Writes `value` in one to ten bytes.
#[inline]
pub(super) fn write(out: &mut Room, mut value: u64) {
    while value >= 0x80 {
        out.put(value as u8 | 0x80);
        value >>= 7;
    }
    out.put(value as u8);
}

/// Takes a value off the front of `bytes`; `None` if they end within it or it exceeds 64 bits.
#[inline]
pub(super) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::room::RECORD_MAX;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_round_trips_in_at_most_ten_bytes(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = [0; RECORD_MAX];
            let mut room = Room::new(&mut bytes);
            write(&mut room, value);
            let length = room.length();
            prop_assert!(length <= 10);
            let mut rest = &bytes[..length];
            prop_assert_eq!(read(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_value_that_is_cut_off_or_exceeds_64_bits_is_refused() {
        assert_eq!(read(&mut [0x80, 0x80].as_slice()), None);
        assert_eq!(read(&mut [0xff; 11].as_slice()), None);
        let two_to_the_64 = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert_eq!(read(&mut two_to_the_64.as_slice()), None);
    }
}
