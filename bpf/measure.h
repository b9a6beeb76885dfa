/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long the scheduler takes, in the sources of overhead of paper 002 (section 2). Part of scheduler.bpf.c.
 *
 * Only where setting.is_measured says so: it is a constant when the programs are loaded, and the verifier takes all of this out
 * of a scheduler that is not measured. An interval goes into the buffer of notes, and what does not fit there is counted. Each
 * begins and ends on one CPU, but for the one from a kick on. The time to write one down lies between intervals.
 *
 * Where holds are timed, too (hold.h), one decision in LAXITY_TURN is for them, with the switch that follows, and one handler in as
 * many: what it takes itself is not written down, and each hold of a lock is, in its place.
 *
 * Where Linux itself works it cannot be seen from here: before a handler of a timer begins, and after a thread was chosen. The
 * first is known from when the timer was due, the second from the thread, which finds `runs_since` in its page.
 */
#ifndef LAXITY_MEASURE_H
#define LAXITY_MEASURE_H

#include "tasks.h"

/* What user space reads as `Interval`, with the same numbers. */
enum laxity_span {
	/* The handler of the timer that releases jobs, if it released one; it sets the timer again, too. */
	SPAN_RELEASE,
	/* From when Linux asks which thread is next until that is decided, less what re-arming takes; where a task is concerned. */
	SPAN_SCHEDULING,
	/* From then until the thread of a task has the CPU, as far as sched_ext is told. */
	SPAN_SWITCH,
	/* From when another CPU is interrupted until Linux asks there. */
	SPAN_KICK,
	/* The same, of a CPU that interrupts itself. */
	SPAN_KICK_HERE,
	/* The handler of the timer of a quantum. */
	SPAN_TICK,
	/* The timer of releases is set after a completion. */
	SPAN_REARMING,
	/* From when one of the two timers was due until its handler begins. */
	SPAN_LATENESS,
	/*
	 * From when a lock is asked for until it is given back, an enum laxity_lock each; `at` is when what it is a part of began, and
	 * `from` is that: SPAN_RELEASE, SPAN_SCHEDULING, SPAN_SWITCH or SPAN_TICK. See hold.h.
	 */
	SPAN_LINKS,
	SPAN_TIMES,
	SPAN_EARLY,
};
/* No divisor of what comes again and again: decisions alternate between the end of a job and the begin of one. */
#define LAXITY_TURN 5

struct laxity_interval {
	/* When it began, on the monotonic clock; and how long it was, in ns. */
	u64 at;
	u64 span;
	u16 kind;
	u16 cpu;
	/* The CPU that interrupted it; of a hold, what it is a part of. */
	u16 from;
	u16 unused;
};

/* Of a CPU. Programs of a CPU that use this do not interrupt each other: switches are made with interrupts off. */
struct laxity_measured {
	/* The decision that is being taken, and what of it was re-arming. */
	u64 began;
	u64 rearming;
	/* When the last one was taken; 0: no thread of a task follows. */
	u64 decided;
	/* Since when it is interrupted, 0: it is not; and by which CPU. */
	u64 kicked;
	u64 kicked_by;
	/* Jobs released on it. */
	u64 releases;
	/* Decisions, and handlers, until one of them is for holds. */
	u32 decision_turn;
	u32 handler_turn;
	struct laxity_interval interval;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_CPUS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct laxity_measured);
} measured SEC(".maps");

LAXITY_INLINE struct laxity_measured *measured_on(u32 cpu)
{
	u32 at = cpu & (LAXITY_CPUS - 1);

	return setting.is_measured ? bpf_map_lookup_elem(&measured, &at) : 0;
}

LAXITY_INLINE struct laxity_measured *measured_here(void)
{
	return setting.is_measured ? measured_on(bpf_get_smp_processor_id()) : 0;
}

LAXITY_INLINE void write_interval(struct laxity_measured *it)
{
	if (bpf_ringbuf_output(&notes, &it->interval, sizeof(it->interval), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&state.unmeasured, 1);
}

/* Writes an interval of this CPU down. */
LAXITY_INLINE void note_interval(struct laxity_measured *it, u32 kind, u64 from, u64 to)
{
	it->interval.at = from;
	it->interval.span = to > from ? to - from : 0;
	it->interval.kind = kind;
	it->interval.cpu = bpf_get_smp_processor_id();
	it->interval.from = it->kicked_by;
	write_interval(it);
}

/* Whether what goes on here is for holds. */
LAXITY_INLINE int is_for_holds(void)
{
	return laxity_holds_are_timed && laxity_holds_here()->is_timed;
}

/* What begins here is for holds, if it is its turn. */
LAXITY_INLINE void begin_holds(u32 *turn)
{
	struct laxity_holds *holds;

	if (!laxity_holds_are_timed)
		return;
	holds = laxity_holds_here();
	*turn = *turn ? *turn - 1 : LAXITY_TURN - 1;
	holds->count = 0;
	holds->is_timed = !*turn;
}

/* The holds of what goes on since that time are written down, if it `counts`. */
LAXITY_INLINE void note_holds(struct laxity_measured *it, u32 kind, u64 since, int counts)
{
	struct laxity_holds *holds = laxity_holds_here();
	u32 at;

	for (at = 0; counts && at < LAXITY_HELD && at < holds->count; at++) {
		struct laxity_held *held = &holds->held[at & (LAXITY_HELD - 1)];

		it->interval.at = since;
		it->interval.span = held->span;
		it->interval.kind = SPAN_LINKS + held->lock;
		it->interval.cpu = bpf_get_smp_processor_id();
		it->interval.from = kind;
		write_interval(it);
	}
	holds->count = 0;
}

/* What a decision was about. */
enum laxity_decided {
	/* No task. */
	DECIDED_ELSE,
	/* A task whose thread goes on, or has no CPU any more. */
	DECIDED,
	/* A task whose thread gets the CPU. */
	DECIDED_SWITCH,
};

LAXITY_INLINE void begin_decision(u32 cpu)
{
	struct laxity_measured *it = measured_on(cpu);
	u64 kicked, now;

	if (!it)
		return;
	now = bpf_ktime_get_ns();
	kicked = it->kicked;
	it->kicked = 0;
	if (kicked)
		note_interval(it, it->kicked_by == cpu ? SPAN_KICK_HERE : SPAN_KICK, kicked, now);
	it->rearming = it->decided = 0;
	begin_holds(&it->decision_turn);
	it->began = bpf_ktime_get_ns();
}

LAXITY_INLINE void end_decision(u32 cpu, u32 decided)
{
	struct laxity_measured *it = measured_on(cpu);
	u64 now;

	if (!it)
		return;
	if (is_for_holds()) {
		note_holds(it, SPAN_SCHEDULING, it->began, decided != DECIDED_ELSE);
		/* Those of the switch are next, if there is one. */
		it->decided = decided == DECIDED_SWITCH;
		laxity_holds_here()->is_timed = it->decided;
		return;
	}
	now = bpf_ktime_get_ns();
	if (decided != DECIDED_ELSE) {
		/* As if it came last: a CPU does one thing at a time in a trace, too. */
		note_interval(it, SPAN_SCHEDULING, it->began, now - it->rearming);
		if (it->rearming)
			note_interval(it, SPAN_REARMING, now - it->rearming, now);
	}
	it->decided = decided == DECIDED_SWITCH ? bpf_ktime_get_ns() : 0;
}

/* The thread of a task has the CPU, or another one if there is no `job`. */
LAXITY_INLINE void end_switch(u32 cpu, struct laxity_job *job)
{
	struct laxity_measured *it = measured_on(cpu);
	struct laxity_entry *entry;
	u64 now;

	if (!it)
		return;
	if (is_for_holds()) {
		note_holds(it, SPAN_SWITCH, it->began, job && it->decided);
		it->decided = laxity_holds_here()->is_timed = 0;
		return;
	}
	now = bpf_ktime_get_ns();
	if (job && it->decided)
		note_interval(it, SPAN_SWITCH, it->decided, now);
	it->decided = 0;
	entry = job && !job->anonymous ? entry_of(job) : 0;
	if (entry)
		entry->runs_since = bpf_ktime_get_ns();
}

/* As alarm.h says. */
LAXITY_GLOBAL int await(u32 number);

/* Task `number` waits for its next release after a completion: in a decision, or before one by a thread that `sleeps`. */
LAXITY_INLINE void rearm(u32 number, u64 sleeps)
{
	struct laxity_measured *it = measured_here();
	u64 began = it ? bpf_ktime_get_ns() : 0;

	await(number);
	if (!it || is_for_holds())
		return;
	if (sleeps)
		note_interval(it, SPAN_REARMING, began, bpf_ktime_get_ns());
	else
		it->rearming += bpf_ktime_get_ns() - began;
}

/* `cpu` is about to be interrupted by this one. */
LAXITY_GLOBAL int note_kick(u32 cpu)
{
	struct laxity_measured *it = measured_on(cpu);

	/* It lasts while this CPU goes on. */
	if (it && !it->kicked && !is_for_holds()) {
		it->kicked_by = bpf_get_smp_processor_id();
		it->kicked = bpf_ktime_get_ns();
	}
	return 0;
}

/* A job is released on this CPU. */
LAXITY_INLINE void count_release(void)
{
	struct laxity_measured *it = measured_here();

	if (it)
		it->releases++;
}

/* A handler of a timer begins. Returns when. */
LAXITY_INLINE u64 begin_handler(void)
{
	struct laxity_measured *it = measured_here();

	if (!it)
		return 0;
	it->releases = 0;
	begin_holds(&it->handler_turn);
	return bpf_ktime_get_ns();
}

/* It ends, and its timer was due at that time. */
LAXITY_INLINE void end_handler(u32 kind, u64 due, u64 began)
{
	struct laxity_measured *it = measured_here();
	u64 now;

	if (!it)
		return;
	if (is_for_holds()) {
		note_holds(it, kind, began, kind != SPAN_RELEASE || it->releases);
		laxity_holds_here()->is_timed = 0;
		return;
	}
	now = bpf_ktime_get_ns();
	if (kind == SPAN_RELEASE && !it->releases)
		return;
	note_interval(it, kind, began, now);
	/* Another CPU may have set it anew meanwhile. */
	if (due && due <= began)
		note_interval(it, SPAN_LATENESS, due, began);
}

#endif
