/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is due at a time: releases, budgets, time for other threads. Part of scheduler.bpf.c.
 *
 * One timer of the kernel, set to the next of them, goes off where it was set. Where a CPU is dedicated to interrupts (paper 002:
 * I2), jobs are released and budgets given by a second one, which goes off there. As it cannot be set from elsewhere, it goes off
 * at all times at which jobs may be due to be released, complete or not; a job that is complete after the next release finds that
 * one itself.
 */
#ifndef LAXITY_ALARM_H
#define LAXITY_ALARM_H

#include "arrivals.h"
#include "budgets.h"
#include "measure.h"
#include "others.h"
#include "tasks.h"

struct alarm {
	struct bpf_timer timer;
	/* What it is set to, where that is looked at: under quanta, and where it is measured. */
	u64 due;
};

/* Everything, or all that the second one does not. */
#define ALARM 0
/* Releases and new budgets, on the CPU dedicated to them. */
#define ALARM_DEDICATED 1

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 2);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct alarm);
} alarms SEC(".maps");

/* Whether the second one is to be set anew. */
u32 must_look SEC(".bss.alarm") = 0;

LAXITY_INLINE int is_dedicated(void)
{
	return setting.dedicated != LAXITY_NONE;
}

/* Releases the job of task `number`, which is due, unless another CPU does so at this moment. */
LAXITY_INLINE void release(u32 number, struct laxity_job *job)
{
	struct laxity_entry *entry;
	struct laxity_note note = {};

	if (__sync_val_compare_and_swap(&job->waits, WAITS_RELEASE, WAITS_NOT) != WAITS_RELEASE)
		return;
	job->released++;
	count_release();
	entry = entry_of(job);
	job->due = due_of(entry, job);
	refill(number, job);
	/* Before its thread can have a CPU. */
	if (entry) {
		entry->release = job->release;
		entry->deadline = job->due;
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

/* The same, for the CPU on which its predecessor has just been completed. */
LAXITY_GLOBAL int release_late(u32 number)
{
	struct laxity_job *job = job_of(number);

	if (job)
		release(number, job);
	return 0;
}

struct look {
	u64 now;
	u64 next;
	/* Other threads that wait. */
	s32 others;
	/* Which alarm it is. */
	u32 by;
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

/* When the job after the present one of a task is due to be released, or the next one after `now`, as far as that is known. */
LAXITY_INLINE u64 next_release(struct laxity_job *job, u64 now)
{
	u64 period = job->period, release = job->release;

	/* No timer releases work of interrupt threads. */
	if (!job->pid || !period || job->anonymous)
		return ~0ull;
	if (job->is_told)
		return now < release && job->waits == WAITS_RELEASE ? release : ~0ull;
	return now < release ? release : now + period - (now - release) % period;
}

/* What is due of task `number`. */
static s64 look_at(u32 number, struct look *look)
{
	struct laxity_job *job = job_of(number);
	u64 due;

	if (!job)
		return 0;
	if (is_dedicated() && look->by == ALARM_DEDICATED) {
		due = next_release(job, look->now);
		look->next = due < look->next ? due : look->next;
		due = job->waits == WAITS_RELEASE ? job->release : job->waits == WAITS_BUDGET ? job->server.from : ~0ull;
	} else if (is_dedicated()) {
		due = exhausted_at(job);
	} else {
		due = job->waits == WAITS_RELEASE ? job->release :
		      job->waits == WAITS_BUDGET  ? job->server.from :
						    exhausted_at(job);
	}
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
LAXITY_INLINE u64 release_due(u64 now, u32 by)
{
	struct look look = { .now = now, .next = ~0ull, .by = by };

	bpf_loop(state.tasks, look_at, &look, 0);
	if (setting.others_period && by == ALARM)
		look_for_others(&look);
	return look.next;
}

/*
 * Releases what is due and sets the timer to the next release. Several CPUs may do so at once, and the one that sets it
 * last may know of a later release only: so each looks again after it has set it.
 */
LAXITY_INLINE int arm(struct alarm *alarm, u32 by)
{
	u64 next, set = ~0ull;
	u32 round;

	for (round = 0; round < 4; round++) {
		next = release_due(bpf_ktime_get_ns(), by);
		if (next >= set)
			return 0;
		if (setting.quantum || setting.is_measured)
			alarm->due = next;
		if (bpf_timer_start(&alarm->timer, next,
				    by == ALARM ? BPF_F_TIMER_ABS : BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
			return -1;
		set = next;
	}
	return 0;
}

static int on_timer(void *map, u32 *key, struct alarm *alarm)
{
	u64 due = alarm->due, began = begin_handler();

	arm(alarm, ALARM);
	end_handler(SPAN_RELEASE, due, began);
	return 0;
}

static int on_dedicated_timer(void *map, u32 *key, struct alarm *alarm)
{
	u64 due = alarm->due, began = begin_handler();

	arm(alarm, ALARM_DEDICATED);
	end_handler(SPAN_RELEASE, due, began);
	return 0;
}

LAXITY_GLOBAL int set_timer(s32 pid)
{
	u32 at = ALARM;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &at);

	if (!alarm || arm(alarm, ALARM))
		FAIL("the timer cannot be started", pid);
	return 0;
}

/* The same on the dedicated CPU, for releases and new budgets. */
LAXITY_GLOBAL int set_dedicated_timer(s32 pid)
{
	u32 at = ALARM_DEDICATED;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &at);

	if (!alarm || arm(alarm, ALARM_DEDICATED))
		FAIL("the timer of the dedicated CPU cannot be started", pid);
	return 0;
}

/* A task waits for its first release, or for a new budget: at a time that the timer may not be set to. */
LAXITY_INLINE void await_release(s32 pid)
{
	if (!is_dedicated()) {
		set_timer(pid);
	} else if (bpf_get_smp_processor_id() == setting.dedicated) {
		set_dedicated_timer(pid);
	} else {
		__sync_lock_test_and_set(&must_look, 1);
		scx_bpf_kick_cpu(setting.dedicated, KICK_PREEMPT);
	}
}

/* The dedicated CPU was told that its timer is to be set anew. */
LAXITY_INLINE void look_again(void)
{
	if (must_look && __sync_lock_test_and_set(&must_look, 0))
		set_dedicated_timer(0);
}

/* Releases what is due, before a quantum begins that the jobs should not miss: where that may be done on this CPU. */
LAXITY_INLINE void release_before(u64 now)
{
	u32 at = is_dedicated() ? ALARM_DEDICATED : ALARM;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &at);

	if (!alarm || now < alarm->due)
		return;
	if (!is_dedicated())
		set_timer(0);
	else if (bpf_get_smp_processor_id() == setting.dedicated)
		set_dedicated_timer(0);
}

#endif
