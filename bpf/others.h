/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time for all other threads, so that jobs cannot starve them. Part of scheduler.bpf.c.
 *
 * Policy: on each CPU other threads have `others_budget` in each `others_period` at least, if they want it. Time that they have while
 * no job wants the CPU counts, too; only the rest comes before jobs, late in the period: from so early on that half of the time
 * left is enough. (So Linux's fair servers of 6.12 do it, which sched_ext's threads do not have.) CPUs are one after the other.
 * Guarantee: no thread waits for a CPU for longer than two periods, but for those before it. A job is delayed by no more than the budget in each
 * period, on each CPU that it uses, and not within a non-preemptive section.
 *
 * Links stay as they are: to the policy it is as if the CPU were slower for a while.
 */
#ifndef LAXITY_OTHERS_H
#define LAXITY_OTHERS_H

#include "shares.h"
#include "tasks.h"

/* Of a CPU; written by that CPU. */
struct laxity_others {
	/* When the period began that `had` is of. */
	u64 begun;
	/* What other threads executed in it, but for what one executes since `since`; 0: none executes. */
	u64 had;
	u64 since;
	/* They go before jobs until they have had what is missing of the period that began then; 0: they do not, or want no more. */
	u64 go_first_in;
};

struct laxity_others others[LAXITY_CPUS] SEC(".bss.others") = {};
/* Whether the timer is set for them. */
u32 others_are_known SEC(".bss.others") = 0;
/* When one came last: Linux puts it into the queue a little later. */
u64 other_came SEC(".bss.others") = 0;
/* Long enough for that, and for a CPU to change hands once it is interrupted. */
#define LOOK_AGAIN 1000000ull

LAXITY_INLINE struct laxity_others *others_on(s32 cpu)
{
	return &others[cpu & (LAXITY_CPUS - 1)];
}

/* The beginning of the period that `now` is in. */
LAXITY_INLINE u64 period_of(s32 cpu, u64 now)
{
	u64 period = setting.others_period, apart = period / LAXITY_CPUS * (cpu & (LAXITY_CPUS - 1));

	return now - (now + apart) % (period ? period : 1);
}

/* What other threads had on `cpu` in the period that began at `begun`. */
LAXITY_INLINE u64 had_since(struct laxity_others *it, u64 begun, u64 now)
{
	u64 had = it->begun == begun ? it->had : 0, since = it->since;

	if (since && since < begun)
		since = begun;
	return since && now > since ? had + now - since : had;
}

/* How much of `cpu` other threads that wait are to have now, before jobs; 0: nothing, and `later` is when to look again. */
LAXITY_INLINE u64 owed(s32 cpu, u64 now, u64 *later)
{
	u64 period = setting.others_period, budget = setting.others_budget, begun, had, lacks;

	*later = ~0ull;
	if (!period || setting.cluster_of[cpu & (LAXITY_CPUS - 1)] == LAXITY_NONE)
		return 0;
	/* What it owes it gives once it is not throttled any more. */
	if (is_throttled(cpu, now)) {
		*later = share_of(cpu)->until;
		return 0;
	}
	begun = period_of(cpu, now);
	had = had_since(others_on(cpu), begun, now);
	if (had >= budget) {
		*later = begun + 2 * period - 2 * budget;
		return 0;
	}
	lacks = budget - had;
	*later = begun + period - 2 * lacks;
	/* Once they go first they keep it: else they would be in no hurry any more as soon as they have had a little. */
	return now >= *later || others_on(cpu)->go_first_in == begun ? lacks : 0;
}

/* A thread that is no task has `cpu` from now on. */
LAXITY_INLINE void begin_other(s32 cpu)
{
	if (setting.others_period)
		others_on(cpu)->since = bpf_ktime_get_ns();
}

/* No such thread has `cpu` any more. */
LAXITY_INLINE void end_other(s32 cpu)
{
	struct laxity_others *it = others_on(cpu);
	u64 now, begun;

	if (!it->since)
		return;
	now = bpf_ktime_get_ns();
	begun = period_of(cpu, now);
	it->had = had_since(it, begun, now);
	it->begun = begun;
	it->since = 0;
}

/* None of those that wait may run on `cpu`: it owes them nothing more in this period. */
LAXITY_INLINE void owe_nothing(s32 cpu, u64 now)
{
	struct laxity_others *it = others_on(cpu);

	it->begun = period_of(cpu, now);
	it->had = setting.others_budget;
	it->go_first_in = 0;
}

#endif
