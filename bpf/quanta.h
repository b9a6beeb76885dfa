/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where quanta begin. Part of scheduler.bpf.c.
 *
 * Policy: quantum-driven scheduling of paper 002 (section 2, S2), with aligned quanta, where one tick decides for a cluster, or
 * with staggered ones, where each CPU has a tick that decides for it. Quanta are numbered from time 0 of the monotonic clock.
 * A tick of a quantum in which no job waits for a link would change nothing: so the timer is set only while one does.
 * Guarantee: a job that waits where a quantum begins is considered by the tick of that quantum, however late that is; a job
 * released at that very time, too, unless another CPU releases all jobs.
 *
 * The timer of a CPU that has its own tick goes where it was set, and from there to that CPU at its next switch.
 */
#ifndef LAXITY_QUANTA_H
#define LAXITY_QUANTA_H

#include "alarm.h"
#include "tasks.h"

/* Of a CPU; with aligned quanta of the first one of a cluster, for all of it. */
struct tick {
	struct bpf_timer timer;
	/* When it is due. */
	u64 due;
	/* Quanta before this one have begun. */
	u64 next_quantum;
	/* Whether the timer is set, or about to be; on which CPU. */
	u32 is_on;
	u32 at;
	struct laxity_quantum_note happening;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_CPUS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct tick);
} ticks SEC(".maps");

/* When quantum `number` begins on `cpu`. */
LAXITY_INLINE u64 quantum_begins(u32 cpu, u64 number)
{
	return setting.phase_of[cpu & (LAXITY_CPUS - 1)] + number * setting.quantum;
}

/* The quantum that `cpu` is in at `now`. */
LAXITY_INLINE u64 quantum_at(u32 cpu, u64 now)
{
	u64 quantum = setting.quantum;

	return quantum ? (now - setting.phase_of[cpu & (LAXITY_CPUS - 1)]) / quantum : 0;
}

/* The timer stays on this CPU: so under dedicated interrupts ticks that follow releases are where these are. */
LAXITY_INLINE void set_tick(struct tick *tick, u64 due)
{
	tick->due = due;
	tick->at = bpf_get_smp_processor_id();
	if (bpf_timer_start(&tick->timer, due, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
		FAIL("the timer of a quantum cannot be started", 0);
}

struct awaited {
	u32 cluster;
	u64 since;
};

/* Sets the tick of `cpu`, if it is of that cluster, for the first quantum that begins at that time or later. */
static s64 await_tick(u32 cpu, struct awaited *awaited)
{
	struct tick *tick;

	if (setting.cluster_of[cpu & (LAXITY_CPUS - 1)] != awaited->cluster)
		return 0;
	tick = bpf_map_lookup_elem(&ticks, &cpu);
	/* Exchanged after the job was queued: one that is about to be stopped looks for jobs after it says so. */
	if (tick && !__sync_lock_test_and_set(&tick->is_on, 1))
		set_tick(tick, quantum_begins(cpu, quantum_at(cpu, awaited->since - 1) + 1));
	return 0;
}

/* A job of `cluster` waits, since then, for a quantum to begin. */
LAXITY_GLOBAL int await_quantum(u32 cluster, u64 since)
{
	struct awaited awaited = { .cluster = cluster, .since = since };
	u32 first = setting.first_of[cluster & (LAXITY_CLUSTERS - 1)];

	if (setting.is_staggered)
		bpf_loop(LAXITY_CPUS, await_tick, &awaited, 0);
	else
		await_tick(setting.cpu_at[first & (LAXITY_CPUS - 1)], &awaited);
	return 0;
}

/* Quantum `number` begins on `cpu`. Returns whether a job is left that waits for a link. */
LAXITY_GLOBAL int carry_out_tick(u32 cpu, u64 number)
{
	struct tick *tick = bpf_map_lookup_elem(&ticks, &cpu);
	struct laxity_note *note;
	u32 more;
	int is_awaited;

	if (!tick)
		return 0;
	note = &tick->happening.note;
	note->kind = HAPPENS_TICK;
	note->number = number;
	note->cluster = setting.cluster_of[cpu & (LAXITY_CPUS - 1)];
	note->cpu = setting.local_of[cpu & (LAXITY_CPUS - 1)];
	/* It happens to no task. */
	note->task = 0;
	is_awaited = laxity_begin_quantum(&tick->happening);
	if (is_awaited < 0) {
		FAIL("a quantum was refused", 0);
		return 0;
	}
	more = note->links > LAXITY_NOTED ? note->links - LAXITY_NOTED : 0;
	if (more > LAXITY_CPUS - LAXITY_NOTED)
		more = LAXITY_CPUS - LAXITY_NOTED;
	if (setting.is_traced && bpf_ringbuf_output(&notes, note, sizeof(*note) + more * sizeof(struct laxity_noted),
						    BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&state.lost, 1);
	if (note->kicks)
		kick_all(note->cluster, note->kicks);
	return is_awaited;
}

LAXITY_INLINE int handle_tick(u32 cpu, struct tick *tick)
{
	u32 cluster = setting.cluster_of[cpu];
	u64 now = bpf_ktime_get_ns(), number;
	int is_awaited;

	/* It may have been moved after it was stopped. */
	__sync_lock_test_and_set(&tick->is_on, 1);
	number = quantum_at(cpu, now > tick->due ? now : tick->due);
	/* It may have been moved after it was set for the next one. */
	if (number >= tick->next_quantum) {
		tick->next_quantum = number + 1;
		release_before(now);
		is_awaited = carry_out_tick(cpu, number);
	} else {
		is_awaited = laxity_is_awaited(cluster);
	}
	if (!is_awaited) {
		__sync_lock_test_and_set(&tick->is_on, 0);
		if (!laxity_is_awaited(cluster) || __sync_lock_test_and_set(&tick->is_on, 1))
			return 0;
	}
	set_tick(tick, quantum_begins(cpu, number + 1));
	return 0;
}

static int on_tick(void *map, u32 *key, struct tick *tick)
{
	u64 due = tick->due, began = begin_handler();

	handle_tick(*key & (LAXITY_CPUS - 1), tick);
	end_handler(SPAN_TICK, due, began);
	return 0;
}

/* `cpu` has its own tick from now on, if that is set on another one. */
LAXITY_INLINE void take_tick(u32 cpu)
{
	struct tick *tick = bpf_map_lookup_elem(&ticks, &cpu);

	if (tick && tick->is_on && tick->at != cpu)
		set_tick(tick, tick->due);
}

static s64 set_up_tick(u32 cpu, void *nothing)
{
	struct tick *tick = bpf_map_lookup_elem(&ticks, &cpu);

	if (tick) {
		bpf_timer_init(&tick->timer, &ticks, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&tick->timer, on_tick);
	}
	return 0;
}

/* Before the scheduler is attached. A program of its own: what is event-driven is loaded without it. */
SEC("syscall") int laxity_setup_quanta(void *nothing)
{
	bpf_loop(LAXITY_CPUS, set_up_tick, 0, 0);
	return 0;
}

#endif
