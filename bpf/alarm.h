/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is due at a time: releases, budgets, time for other threads. Part of scheduler.bpf.c.
 *
 * Tasks that wait for a time are in a heap; one timer of the kernel, set to the first of them, goes off where it was set. An entry may
 * be earlier than what its task waits for now: the timer then finds out, and enters it again. None is later.
 *
 * Where a CPU is dedicated to interrupts (paper 002: I2), jobs are released and budgets given by a second timer, which goes off
 * there. As it cannot be set from elsewhere, it goes off at all times at which jobs may be due to be released, complete or not; a
 * job that is complete after the next release finds that one itself.
 */
#ifndef LAXITY_ALARM_H
#define LAXITY_ALARM_H

#include "arrivals.h"
#include "budgets.h"
#include "heap.h"
#include "measure.h"
#include "others.h"
#include "tasks.h"

struct alarm {
	struct bpf_timer timer;
	/* Of `times`. */
	struct bpf_spin_lock lock;
	/* Tasks, by when they are to be looked at. */
	struct laxity_heap times;
	/* When other threads are, see others.h. */
	u64 others_at;
	/* What the timer is set to; LAXITY_NEVER: it is not. */
	u64 set;
};

/* A timer takes longer than that to go off. */
#define SOON 2000ull

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

LAXITY_INLINE struct alarm *alarm_of(u32 which)
{
	return bpf_map_lookup_elem(&alarms, &which);
}

/* Task `number` is to be looked at by alarm `which` at that time: no later if it `keeps` an earlier one, else just then. */
LAXITY_GLOBAL int enter(u32 which, u32 number, u64 at, u32 keeps)
{
	struct alarm *alarm = alarm_of(which);

	if (!alarm)
		return 0;
	laxity_ask();
	bpf_spin_lock(&alarm->lock);
	laxity_heap_set(&alarm->times, number, at, keeps);
	bpf_spin_unlock(&alarm->lock);
	laxity_gave_back(LOCK_TIMES);
	return 0;
}

/* When alarm `which` is to go off next; LAXITY_NEVER. */
LAXITY_GLOBAL u64 next_of(u32 which)
{
	struct alarm *alarm = alarm_of(which);
	u64 next;

	if (!alarm)
		return LAXITY_NEVER;
	laxity_ask();
	bpf_spin_lock(&alarm->lock);
	next = laxity_heap_time(&alarm->times);
	bpf_spin_unlock(&alarm->lock);
	laxity_gave_back(LOCK_TIMES);
	if (which == ALARM && setting.others_period && alarm->others_at < next)
		next = alarm->others_at;
	return next;
}

struct look {
	u64 now;
	/* When to look again. */
	u64 next;
	/* Other threads that wait. */
	s32 others;
	/* Which alarm it is. */
	u32 which;
};

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
		return LAXITY_NEVER;
	if (job->is_told)
		return now < release && job->waits == WAITS_RELEASE ? release : LAXITY_NEVER;
	return now < release ? release : now + period - (now - release) % period;
}

/* What a task waits for, of what alarm `which` does; LAXITY_NEVER: for nothing. */
LAXITY_INLINE u64 awaited_by(u32 which, struct laxity_job *job)
{
	u32 waits = job->waits;

	if (waits == WAITS_NOT)
		return which == ALARM ? exhausted_at(job) : LAXITY_NEVER;
	if (which != (is_dedicated() ? ALARM_DEDICATED : ALARM))
		return LAXITY_NEVER;
	return waits == WAITS_RELEASE ? job->release : waits == WAITS_BUDGET ? job->server.from : LAXITY_NEVER;
}

/* The first task that is to be looked at now, which is in the heap no more; LAXITY_NONE: the first one is at `look->next`. */
LAXITY_GLOBAL u32 take_due(struct look *look)
{
	struct alarm *alarm = look ? alarm_of(look->which) : 0;
	u64 next;
	u32 number;

	if (!alarm)
		return LAXITY_NONE;
	laxity_ask();
	bpf_spin_lock(&alarm->lock);
	number = laxity_heap_take(&alarm->times, look->now);
	next = laxity_heap_time(&alarm->times);
	bpf_spin_unlock(&alarm->lock);
	laxity_gave_back(LOCK_TIMES);
	look->next = next;
	return number;
}

/* Does the first thing that is due of a task, until nothing is. */
static s64 look_at_first(u32 round, struct look *look)
{
	u32 number = take_due(look);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	u64 due, next;

	if (!job)
		return 1;
	next = look->which == ALARM_DEDICATED ? next_release(job, look->now) : LAXITY_NEVER;
	due = awaited_by(look->which, job);
	if (due > look->now)
		next = due < next ? due : next;
	else if (job->waits == WAITS_RELEASE)
		release(number, job);
	else if (job->waits == WAITS_BUDGET)
		replenish(number, job);
	else
		scx_bpf_kick_cpu(job->cpu, KICK_PREEMPT);
	/* What it waits for may have changed meanwhile, and been entered. */
	if (next != LAXITY_NEVER)
		enter(look->which, number, next, 1);
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

/* Looks at what other threads are owed, and enters when to do so again. */
LAXITY_INLINE void look_at_all_others(struct alarm *alarm)
{
	struct look look = { .now = bpf_ktime_get_ns(), .next = LAXITY_NEVER };

	look_for_others(&look);
	alarm->others_at = look.next;
}

/*
 * Sets the timer to `next`, what comes first, if it is not set to something earlier. Several CPUs may do so at once, and the one that
 * sets it last may know of something later only: so each looks again after it has set it.
 */
LAXITY_INLINE int arm(struct alarm *alarm, u32 which, u64 next)
{
	u64 set = alarm->set;
	u32 round;

	for (round = 0; round < 4; round++, next = next_of(which)) {
		if (next >= set)
			return 0;
		alarm->set = set = next;
		if (bpf_timer_start(&alarm->timer, next,
				    which == ALARM ? BPF_F_TIMER_ABS : BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
			return -1;
	}
	return 0;
}

/*
 * Releases the jobs and gives the budgets that are due, interrupts jobs that have used up theirs, and sets the timer, which has
 * gone off. A loop of the helper's is proven once, and not for each of its rounds. Calls are eight deep at most: this is none.
 */
LAXITY_INLINE void go_off(struct alarm *alarm, u32 which)
{
	struct look look = { .which = which, .now = bpf_ktime_get_ns() };

	/* Before the heap is looked at: what is entered later sets the timer, or is found. */
	__sync_lock_test_and_set(&alarm->set, LAXITY_NEVER);
	bpf_loop(LAXITY_TASKS + 1, look_at_first, &look, 0);
	if (setting.others_period && which == ALARM) {
		look_at_all_others(alarm);
		look.next = next_of(which);
	}
	if (arm(alarm, which, look.next))
		FAIL("a timer cannot be started", which);
}

static int on_timer(void *map, u32 *key, struct alarm *alarm)
{
	u64 due = alarm->set, began = begin_handler();

	go_off(alarm, ALARM);
	end_handler(SPAN_RELEASE, due, began);
	return 0;
}

static int on_dedicated_timer(void *map, u32 *key, struct alarm *alarm)
{
	u64 due = alarm->set, began = begin_handler();

	go_off(alarm, ALARM_DEDICATED);
	end_handler(SPAN_RELEASE, due, began);
	return 0;
}

/* Sets the timer anew after something was entered. */
LAXITY_GLOBAL int set_timer(u32 which)
{
	struct alarm *alarm = alarm_of(which);

	if (!alarm || arm(alarm, which, next_of(which)))
		FAIL("a timer cannot be started", which);
	return 0;
}

/* Other threads wait, or have a CPU before jobs: when to look at them is to be found out anew. */
LAXITY_GLOBAL int await_others(void)
{
	struct alarm *alarm = alarm_of(ALARM);

	if (alarm) {
		look_at_all_others(alarm);
		set_timer(ALARM);
	}
	return 0;
}

/* What task `number` waits for has changed. */
LAXITY_GLOBAL int await(u32 number)
{
	struct laxity_job *job = job_of(number);
	u32 which;
	u64 at;

	if (!job)
		return 0;
	which = is_dedicated() && job->waits != WAITS_NOT ? ALARM_DEDICATED : ALARM;
	at = awaited_by(which, job);
	/*
	 * A budget that ends at once ends here. With `threadirqs` timers go off in a thread of a real-time class, which would preempt
	 * the job before it has executed anything, again and again.
	 */
	if (job->waits == WAITS_NOT && at <= bpf_ktime_get_ns() + SOON) {
		scx_bpf_kick_cpu(job->cpu, KICK_PREEMPT);
		at = LAXITY_NEVER;
	}
	enter(which, number, at, which == ALARM_DEDICATED);
	if (which == ALARM || bpf_get_smp_processor_id() == setting.dedicated) {
		set_timer(which);
	} else {
		__sync_lock_test_and_set(&must_look, 1);
		scx_bpf_kick_cpu(setting.dedicated, KICK_PREEMPT);
	}
	return 0;
}

/* The dedicated CPU was told that its timer is to be set anew. */
LAXITY_INLINE void look_again(void)
{
	if (must_look && __sync_lock_test_and_set(&must_look, 0))
		set_timer(ALARM_DEDICATED);
}

/* Does what is due, before a quantum begins that the jobs should not miss: where that may be done on this CPU. */
LAXITY_INLINE void release_before(u64 now)
{
	u32 which = is_dedicated() ? ALARM_DEDICATED : ALARM;
	struct alarm *alarm = alarm_of(which);

	if (alarm && now >= alarm->set && (!is_dedicated() || bpf_get_smp_processor_id() == setting.dedicated))
		go_off(alarm, which);
}

#endif
