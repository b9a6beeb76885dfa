//! The bytes themselves, read without the structs that wrote them.

use super::bytes;
use super::fixtures::*;

/// A field of a protobuf message: its number, and its value as far as it is needed here.
#[derive(Debug, PartialEq)]
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    unreachable!("the loop returns")
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        fields.push(match key & 7 {
            0 => Field::Number(key >> 3, varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(key >> 3, u64::from_le_bytes(value.try_into().expect("8 bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(key >> 3, value)
            }
            other => panic!("wire type {other}"),
        });
    }
    fields
}

/// Field numbers of Perfetto's `trace_packet.proto`: 10 trusted_packet_sequence_id, 12 interned_data,
/// 13 sequence_flags, 59 trace_packet_defaults, 87 first_packet_on_sequence.
#[test]
fn the_first_packet_clears_the_state_and_names_the_clock() {
    let bytes = bytes(&figure_1_header(), &figure_1a());
    let packets = fields(&bytes);
    let Field::Bytes(1, first) = packets[0] else { panic!("a trace is a list of packets: {:?}", packets[0]) };
    let first = fields(first);
    assert!(first.contains(&Field::Number(10, 1)) && first.contains(&Field::Number(13, 1)));
    assert!(first.contains(&Field::Number(87, 1)));
    let defaults = first.iter().find_map(|field| match field {
        Field::Bytes(59, defaults) => Some(fields(defaults)),
        _ => None,
    });
    assert_eq!(defaults, Some(vec![Field::Number(58, 6)]), "timestamp_clock_id is BOOTTIME");
    for packet in &packets {
        let Field::Bytes(1, packet) = packet else { panic!("only packets: {packet:?}") };
        assert!(fields(packet).contains(&Field::Number(10, 1)), "every packet is of sequence 1");
    }
}

/// `ftrace_event_bundle.proto`: 1 cpu, 2 event; `ftrace_event.proto`: 1 timestamp, 2 pid, 4 sched_switch;
/// `sched.proto`: 1 to 4 prev comm, pid, prio, state, 5 to 7 next comm, pid, prio.
#[test]
fn a_switch_has_the_fields_of_ftrace() {
    let bytes = bytes(&figure_1_header(), &figure_1a());
    let bundles: Vec<&[u8]> = fields(&bytes)
        .into_iter()
        .filter_map(|packet| match packet {
            Field::Bytes(1, packet) => fields(packet).into_iter().find_map(|field| match field {
                Field::Bytes(1, bundle) => Some(bundle),
                _ => None,
            }),
            _ => None,
        })
        .collect();
    assert_eq!(bundles.len(), 2, "a short trace has one bundle per CPU");
    let second = fields(bundles[1]);
    assert_eq!(second[0], Field::Number(1, 1), "of CPU 1");
    let switches: Vec<_> = second
        .iter()
        .filter_map(|field| match field {
            Field::Bytes(2, event) => {
                let event = fields(event);
                let switch = event.iter().find_map(|field| match field {
                    Field::Bytes(4, switch) => Some(fields(switch)),
                    _ => None,
                });
                switch.map(|switch| (event, switch))
            }
            _ => None,
        })
        .collect();
    // idle to T2 at 3.9, T2 preempted by T1 at 6.5, T1 to idle at 9.
    assert_eq!(switches.len(), 3);
    let (event, switch) = &switches[1];
    assert_eq!(event[..2], [Field::Number(1, 6_500_000), Field::Number(2, 1_002)]);
    let minus_one = u64::MAX;
    assert_eq!(
        *switch,
        [
            Field::Bytes(1, b"T2"),
            Field::Number(2, 1_002),
            Field::Number(3, minus_one),
            Field::Number(4, 256),
            Field::Bytes(5, b"T1"),
            Field::Number(6, 1_001),
            Field::Number(7, minus_one),
        ]
    );
}
