"""Perfetto's own protobuf bindings read the traces that laxity-trace exports.

Run with::

    pip install perfetto pytest
    pytest tests/python/test_perfetto_decodes.py

The traces stand next to the Rust tests, which check that the export still writes them byte for byte. To check another
trace as well, name it in LAXITY_PERFETTO_TRACE. Nothing is skipped here: without the `perfetto` package the import
fails, and the caller of pytest decides what that means.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

TRACES = Path(__file__).parents[2] / "crates" / "laxity-trace" / "tests" / "perfetto"
FIGURE_1C = TRACES / "figure_1c.perfetto-trace"
MISSES = TRACES / "misses.perfetto-trace"
INVERSION_SLIH = TRACES / "inversion_slih.perfetto-trace"
INVERSION_KLMIRQD = TRACES / "inversion_klmirqd.perfetto-trace"
PIPELINE = TRACES / "pipeline.perfetto-trace"
WRITTEN = [FIGURE_1C, MISSES, INVERSION_SLIH, INVERSION_KLMIRQD, PIPELINE]
GIVEN = [Path(os.environ["LAXITY_PERFETTO_TRACE"])] if "LAXITY_PERFETTO_TRACE" in os.environ else []

BEGIN, END, INSTANT = (
    schema.TrackEvent.TYPE_SLICE_BEGIN,
    schema.TrackEvent.TYPE_SLICE_END,
    schema.TrackEvent.TYPE_INSTANT,
)


def decode(path):
    """The trace in the file, as Perfetto's Trace message."""
    trace = schema.Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


def unknown_fields(message, where):
    """Paths of all fields that Perfetto's schema does not know."""
    found = [f"{where}:{field.field_number}" for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            # A repeated field has no DESCRIPTOR of its own, a single message has.
            for part in [value] if hasattr(value, "DESCRIPTOR") else value:
                found += unknown_fields(part, f"{where}.{descriptor.name}")
    return found


def events(trace):
    """Track events as (time in ns, track, type, name, annotations), names resolved."""
    names, annotations, tracks, found = {}, {}, {}, []
    for packet in trace.packet:
        names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
        annotations.update((entry.iid, entry.name) for entry in packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = track.name or track.thread.thread_name or track.process.process_name
        if packet.HasField("track_event"):
            event = packet.track_event
            name = names[event.name_iid] if event.name_iid else event.name
            facts = {annotations[a.name_iid]: getattr(a, a.WhichOneof("value")) for a in event.debug_annotations}
            found.append((packet.timestamp, tracks[event.track_uuid], event.type, name, facts))
    return found


@pytest.mark.parametrize("path", [*WRITTEN, *GIVEN], ids=lambda path: path.name)
def test_every_field_is_one_that_perfetto_knows(path):
    trace = decode(path)
    assert len(trace.packet) > 0
    assert unknown_fields(trace, "trace") == []


@pytest.mark.parametrize("path", [*WRITTEN, *GIVEN], ids=lambda path: path.name)
def test_one_sequence_starts_with_cleared_state_and_introduces_what_it_uses(path):
    trace = decode(path)
    assert {packet.trusted_packet_sequence_id for packet in trace.packet} == {1}
    first = trace.packet[0]
    assert first.first_packet_on_sequence
    assert first.sequence_flags == schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    assert first.trace_packet_defaults.timestamp_clock_id == 6  # BUILTIN_CLOCK_BOOTTIME
    for packet in trace.packet:
        if packet.HasField("track_event"):
            assert packet.sequence_flags == schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    tracks = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    uuids = [track.uuid for track in tracks]
    assert len(uuids) == len(set(uuids))
    assert 0 not in uuids
    assert all(track.parent_uuid in uuids for track in tracks if track.parent_uuid)
    events(trace)  # resolves every name and track, or raises KeyError


@pytest.mark.parametrize("path", [*WRITTEN, *GIVEN], ids=lambda path: path.name)
def test_slices_are_nested_once_sorted_by_time(path):
    depth = defaultdict(int)
    trace = decode(path)
    packets = sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp)
    for packet in packets:
        track = packet.track_event.track_uuid
        depth[track] += {BEGIN: 1, END: -1}.get(packet.track_event.type, 0)
        assert depth[track] >= 0, f"a slice ends at {packet.timestamp} ns that did not begin"


def test_a_preemption_and_a_migration_show_on_the_cpu_tracks():
    """Paper 002, Fig. 1(c): T1 preempts T2 on P2, T2 goes on on P1."""
    switches = defaultdict(list)
    for packet in decode(FIGURE_1C).packet:
        for event in packet.ftrace_events.event:
            if event.HasField("sched_switch"):
                switch = event.sched_switch
                row = (event.timestamp, switch.prev_comm, switch.prev_state, switch.next_comm)
                switches[packet.ftrace_events.cpu].append(row)
    assert switches[0] == [
        (2_200_000, "swapper", 0, "T3"),
        (8_900_000, "T3", 1, "swapper"),
        (9_400_000, "swapper", 0, "T2"),
        (13_000_000, "T2", 1, "swapper"),
    ]
    assert switches[1] == [
        (4_600_000, "swapper", 0, "T2"),
        (7_500_000, "T2", 256, "T1"),
        (10_000_000, "T1", 1, "swapper"),
    ]


def test_a_waking_thread_is_the_task_and_knows_its_cpu():
    wakings = [
        (event.timestamp, event.sched_waking.comm, event.sched_waking.target_cpu)
        for packet in decode(FIGURE_1C).packet
        for event in packet.ftrace_events.event
        if event.HasField("sched_waking")
    ]
    assert sorted(wakings) == [(1_700_000, "T3", 0), (4_100_000, "T2", 1), (6_700_000, "T1", 0)]


def test_an_interrupt_is_an_arrow_from_sender_to_receiver():
    flows = [packet.track_event for packet in decode(FIGURE_1C).packet if packet.track_event.flow_ids]
    ends = [packet.track_event for packet in decode(FIGURE_1C).packet if packet.track_event.terminating_flow_ids]
    assert [list(event.flow_ids) for event in flows] == [list(event.terminating_flow_ids) for event in ends] == [[1]]


def test_misses_response_times_and_lateness_are_there():
    found = events(decode(MISSES))
    missed = [(at, track) for at, track, kind, name, _ in found if kind == INSTANT and name == "deadline missed"]
    assert sorted(missed) == [(4_000_000, "control"), (8_000_000, "control"), (8_000_000, "logger")]
    done = [(at, facts) for at, _, kind, _, facts in found if kind == END and "response_time_ns" in facts]
    assert [(at, facts["response_time_ns"], facts["lateness_ns"], facts["missed"]) for at, facts in done] == [
        (5_000_000, 5_000_000, 1_000_000, True),
        (9_000_000, 5_000_000, 1_000_000, True),
    ]


def test_halves_of_interrupts_name_the_job_they_run_for():
    """Paper 000, Fig. 1: the bottom half for H is on the stack of L, or in a thread."""
    found = events(decode(INVERSION_SLIH))
    halves = [(at, track, facts["owner"]) for at, track, kind, name, facts in found if name.endswith("half")]
    assert halves == [(4_000_000, "cpu0", "H 0"), (4_300_000, "cpu0", "H 0")]
    found = events(decode(INVERSION_KLMIRQD))
    served = [(at, track, facts["owner"]) for at, track, kind, name, facts in found if name == "serves"]
    assert served == [(4_400_000, "klmirqd0", "H 0")]


def test_engines_and_locks_have_tracks_of_their_own():
    slices = [(at, track, name) for at, track, kind, name, _ in events(decode(PIPELINE)) if kind == BEGIN]
    shown = {track: [(at, name) for at, other, name in slices if other == track] for _, track, _ in slices}
    # The engine and its lock have one name.
    assert sorted(shown["gpu0 EE"]) == [
        (3_000_000, "detector"),
        (3_000_000, "detector 0"),
        (11_000_000, "lidar 0"),
        (11_200_000, "lidar"),
    ]
    assert shown["gpus 1"] == [(1_000_000, "detector 0")]
    assert shown["lock waits"] == [(4_000_000, "waits for gpu0 EE")]
    assert shown["priority"] == [(4_000_000, "inherits from lidar")]


def test_tokens_are_arrows():
    flows = [
        (packet.timestamp, list(packet.track_event.flow_ids), list(packet.track_event.terminating_flow_ids))
        for packet in decode(PIPELINE).packet
        if packet.track_event.flow_ids or packet.track_event.terminating_flow_ids
    ]
    assert flows == [(500_000, [1], []), (500_000, [1], []), (13_500_000, [2], []), (13_500_000, [2], [1])]
