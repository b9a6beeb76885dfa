/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority inheritance. Part of scheduler.bpf.c.
 *
 * Policy: while a task sleeps that says in its page which task of its process has what it waits for, that one has at least its
 * priority; so do in turn those that the holder waits for (Sha, Rajkumar & Lehoczky, IEEE Transactions on Computers 39(9),
 * 1990; cited from memory).
 * Guarantee: each effective priority is right once the last of those that change it at the same time is through.
 * Not handled: locks themselves, which are words in the memory of the process.
 */
#ifndef LAXITY_INHERIT_H
#define LAXITY_INHERIT_H

#include "tasks.h"

/* So many tasks in a row wait for each other at most; those behind them inherit nothing. */
#define CHAIN_MAX 16

/* A task that waits for the one of `most` may be more urgent than it. */
static s64 look_at_waiter(u32 number, struct laxity_note *most)
{
	struct laxity_job *job = job_of(number);

	if (!job || job->waits_for != most->task + 1u)
		return 0;
	if (job->urgency < most->number || (job->urgency == most->number && job->of < most->extra)) {
		most->number = job->urgency;
		most->extra = job->of;
	}
	return 0;
}

/* The deadline by which its job ranks under EDF: that of the budget, if the task has one. */
LAXITY_INLINE u64 rank_of(struct laxity_job *job)
{
	return job->server.budget ? job->server.due - job->period + job->deadline : job->server.due;
}

/* What task `number` has of itself: `most->number`, the smaller first, with ties by `most->extra`. */
LAXITY_INLINE void own_urgency(u32 number, struct laxity_job *job, struct laxity_note *most)
{
	most->number = setting.by_task ? job->level : rank_of(job);
	most->extra = most->task = number;
}

/* What it should have. The note is that of the event by which it gets it: calls have little room on the stack. */
LAXITY_INLINE void urgency_of(u32 number, struct laxity_job *job, struct laxity_note *most)
{
	own_urgency(number, job, most);
	bpf_loop(state.tasks, look_at_waiter, most, 0);
}

struct chain {
	u32 number;
	s32 cpu;
	/* What this walk gave to the task `number`. */
	u32 has_given;
	u32 of;
	u64 urgency;
};

static s64 settle(u32 round, struct chain *chain)
{
	struct laxity_job *job = job_of(chain->number);
	struct laxity_note note = {};

	if (!job || !job->pid)
		return 1;
	urgency_of(chain->number, job, &note);
	/* Another walk may have given it something since, which this one overtook: so what was given is compared. */
	if (!chain->has_given) {
		chain->urgency = job->urgency;
		chain->of = job->of;
	}
	if (note.number != chain->urgency || note.extra != chain->of) {
		chain->urgency = job->urgency = note.number;
		chain->of = job->of = note.extra;
		chain->has_given = 1;
		happen(&note, HAPPENS_PRIORITY, chain->cpu, chain->number, job);
		return 0;
	}
	chain->has_given = 0;
	if (!job->waits_for)
		return 1;
	chain->number = job->waits_for - 1;
	return 0;
}

/* Task `number` has another waiter, or one less. */
LAXITY_INLINE void settle_from(u32 number, s32 cpu)
{
	struct chain chain = { .number = number, .cpu = cpu };

	bpf_loop(2 * CHAIN_MAX, settle, &chain, 0);
}

/* The thread of `number` sleeps: perhaps for what another task has. */
LAXITY_INLINE void begin_wait(u32 number, struct laxity_job *job, struct laxity_entry *entry, s32 cpu)
{
	u32 at = entry->waits_for, *holder;

	if (!at || at >= LAXITY_ENTRIES)
		return;
	at = job->page * LAXITY_ENTRIES + at - 1;
	holder = bpf_map_lookup_elem(&places, &at);
	if (!holder || !*holder || *holder == number + 1)
		return;
	job->waits_for = *holder;
	settle_from(*holder - 1, cpu);
}

/* It wakes. */
LAXITY_INLINE void end_wait(struct laxity_job *job, s32 cpu)
{
	u32 holder = job->waits_for;

	if (!holder)
		return;
	job->waits_for = 0;
	settle_from(holder - 1, cpu);
}

#endif
