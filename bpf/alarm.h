/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is due at a time: releases, budgets, time for other threads. Part of scheduler.bpf.c.
 *
 * One timer of the kernel, set to the next of them.
 */
#ifndef LAXITY_ALARM_H
#define LAXITY_ALARM_H

#include "budgets.h"
#include "others.h"
#include "tasks.h"

struct alarm {
	struct bpf_timer timer;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct alarm);
} alarms SEC(".maps");

/* Releases the job of task `number`, which is due, unless another CPU does so at this moment. */
LAXITY_INLINE void release(u32 number, struct laxity_job *job)
{
	struct laxity_entry *entry;
	struct laxity_note note = {};

	if (__sync_val_compare_and_swap(&job->waits, WAITS_RELEASE, WAITS_NOT) != WAITS_RELEASE)
		return;
	job->released++;
	refill(number, job);
	entry = entry_of(job);
	/* Before its thread can have a CPU. */
	if (entry) {
		entry->release = job->release;
		entry->deadline = job->release + job->deadline;
		entry->job = job->released;
	}
	note.number = rank_of(job);
	note.extra = job->release;
	if (happen_here(&note, HAPPENS_RELEASE, bpf_get_smp_processor_id(), number, job))
		FAIL("a release was refused", job->pid);
	/* Its thread left meanwhile. */
	if (!job->pid)
		happen_here(&note, HAPPENS_FORGET, bpf_get_smp_processor_id(), number, job);
}

struct look {
	u64 now;
	u64 next;
	/* Other threads that wait. */
	s32 others;
};

/* What is to be done on `cpu` for other threads. */
static s64 look_at_others(u32 cpu, struct look *look)
{
	struct laxity_others *it = others_on(cpu);
	u64 later, owes = owed(cpu, look->now, &later);

	if (it->go_first_in) {
		/* Until they have had enough. */
		later = look->now + owes;
		owes = !owes;
	} else if (look->others <= 0) {
		return 0;
	}
	if (owes) {
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
		/* It may be in a non-preemptive section, and what comes next is known once it has changed hands. */
		later = look->now + LOOK_AGAIN;
	}
	look->next = later < look->next ? later : look->next;
	return 0;
}

/* What is due of task `number`. */
static s64 look_at(u32 number, struct look *look)
{
	struct laxity_job *job = job_of(number);
	u64 due;

	if (!job)
		return 0;
	due = job->waits == WAITS_RELEASE ? job->release : job->waits == WAITS_BUDGET ? job->server.from : exhausted_at(job);
	if (due > look->now)
		look->next = due < look->next ? due : look->next;
	else if (job->waits == WAITS_RELEASE)
		release(number, job);
	else if (job->waits == WAITS_BUDGET)
		replenish(number, job);
	else
		scx_bpf_kick_cpu(job->cpu, KICK_PREEMPT);
	return 0;
}

/* A thread that comes after this look sees that it is not known, and sets the timer itself. */
LAXITY_INLINE void look_for_others(struct look *look)
{
	u64 known_at;

	__sync_lock_test_and_set(&others_are_known, 0);
	look->others = scx_bpf_dsq_nr_queued(OTHERS);
	known_at = other_came + LOOK_AGAIN;
	if (look->others <= 0 && look->now < known_at && known_at < look->next)
		look->next = known_at;
	if (look->others > 0 || look->now < known_at)
		others_are_known = 1;
	bpf_loop(LAXITY_CPUS, look_at_others, look, 0);
}

/*
 * Releases the jobs and gives the budgets that are due, interrupts jobs that have used up theirs, and returns when that is to be
 * done next; all ones: never. A loop of the helper's is proven once, and not for each of its rounds.
 */
LAXITY_INLINE u64 release_due(u64 now)
{
	struct look look = { .now = now, .next = ~0ull };

	bpf_loop(state.tasks, look_at, &look, 0);
	if (setting.others_period)
		look_for_others(&look);
	return look.next;
}

/*
 * Releases what is due and sets the timer to the next release. Several CPUs may do so at once, and the one that sets it
 * last may know of a later release only: so each looks again after it has set it.
 */
LAXITY_INLINE int arm(struct alarm *alarm)
{
	u64 next, set = ~0ull;
	u32 round;

	for (round = 0; round < 4; round++) {
		next = release_due(bpf_ktime_get_ns());
		if (next >= set)
			return 0;
		if (bpf_timer_start(&alarm->timer, next, BPF_F_TIMER_ABS))
			return -1;
		set = next;
	}
	return 0;
}

static int on_timer(void *map, u32 *key, struct alarm *alarm)
{
	arm(alarm);
	return 0;
}

LAXITY_GLOBAL int set_timer(s32 pid)
{
	u32 zero = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &zero);

	if (!alarm || arm(alarm))
		FAIL("the timer cannot be started", pid);
	return 0;
}

#endif
