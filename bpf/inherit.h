/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority inheritance. Part of scheduler.bpf.c.
 *
 * Policy: while a task sleeps that says in its page which task of its process has what it waits for, that one has at least its
 * priority; so do in turn those that the holder waits for (Sha, Rajkumar & Lehoczky, IEEE Transactions on Computers 39(9),
 * 1990; cited from memory). A thread that grants locks in an order of its own (tokens of GPUs) says for the others for which task they
 * sleep, also while they do.
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
	/* How far it has come from where it began. */
	u32 rounds;
	/* The task from which it goes on afterwards, plus 1. */
	u32 then;
	/* And the entries of `page` whose words are to be looked at after that, a bit each. */
	u32 changed;
	u32 page;
};

/* The task of `page` for which the thread of `entry` says that it sleeps, as `waits_for` of a job has it. */
LAXITY_INLINE u32 named_by(volatile struct laxity_entry *entry, u32 page)
{
	u32 at = entry->waits_for, *holder;

	if (!at)
		return 0;
	if (at >= LAXITY_ENTRIES)
		return LAXITY_NONE;
	at = page * LAXITY_ENTRIES + at - 1;
	holder = bpf_map_lookup_elem(&places, &at);
	return holder && *holder ? *holder : LAXITY_NONE;
}

LAXITY_INLINE int walk_from(struct chain *chain, u32 number)
{
	chain->number = number;
	chain->rounds = chain->has_given = 0;
	return 0;
}

/* The walk goes on elsewhere: where another task inherits from now on, or from the next task that sleeps for another one than it did. */
LAXITY_GLOBAL int walk_on(struct chain *chain)
{
	u32 at, bit, number, before, now, *place;
	struct laxity_entry *entry;
	struct laxity_page *page;
	struct laxity_job *job;

	if (!chain)
		return 1;
	if (chain->then) {
		number = chain->then - 1;
		chain->then = 0;
		return walk_from(chain, number);
	}
	if (!chain->changed) {
		page = page_of(chain->page);
		if (!page || !page->changed)
			return 1;
		chain->changed = __sync_lock_test_and_set(&page->changed, 0);
	}
	/* Nothing, unless it turns out below that there is something. */
	chain->number = LAXITY_NONE;
	bit = chain->changed & -chain->changed;
	chain->changed ^= bit;
	at = chain->page * LAXITY_ENTRIES + laxity_first_of(bit);
	place = bpf_map_lookup_elem(&places, &at);
	number = place && *place ? *place - 1 : LAXITY_NONE;
	job = job_of(number);
	entry = job ? entry_of(job) : 0;
	if (!entry)
		return 0;
	before = job->waits_for;
	now = named_by(entry, chain->page);
	/* It does not sleep for another task yet, or no longer: it is looked at when it does. */
	if (!before || before == now)
		return 0;
	/* It wakes at this moment, or another CPU looks at it. */
	if (__sync_val_compare_and_swap(&job->waits_for, before, now) != before || named_by(entry, chain->page) != now)
		chain->changed |= bit;
	/* The one that loses it goes first: no two ready jobs have one priority. */
	chain->then = now;
	return walk_from(chain, before - 1);
}

static s64 settle(u32 round, struct chain *chain)
{
	struct laxity_job *job = job_of(chain->number);
	struct laxity_note note = {};

	if (!job || !job->pid || chain->rounds++ >= 2 * CHAIN_MAX)
		goto on;
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
	if (job->waits_for) {
		chain->number = job->waits_for - 1;
		return 0;
	}
on:
	return walk_on(chain) != 0;
}

/*
 * Another task waits for `number`, or one less, and perhaps tasks of page `at` for others than they did: the entries `changed`, a bit each, or
 * those that the page says.
 */
LAXITY_INLINE void settle_from(u32 number, u32 at, u32 changed, s32 cpu)
{
	struct chain chain = { .number = number, .cpu = cpu, .page = at, .changed = changed };

	bpf_loop(4 * LAXITY_ENTRIES * CHAIN_MAX, settle, &chain, 0);
}

/* The thread of `number` sleeps: perhaps for what another task has. */
LAXITY_INLINE void begin_wait(u32 number, struct laxity_job *job, struct laxity_entry *entry, s32 cpu)
{
	u32 holder = named_by(entry, job->page);

	if (!holder || holder == number + 1)
		return;
	/* A barrier: another thread may change the word just now, and if the scheduler did not see that it sleeps this does see that. */
	__sync_lock_test_and_set(&job->waits_for, holder);
	settle_from(holder - 1, job->page, 1u << (job->entry & (LAXITY_ENTRIES - 1)), cpu);
}

/* It wakes. */
LAXITY_INLINE void end_wait(struct laxity_job *job, s32 cpu)
{
	u32 holder = job->waits_for;

	if (!holder)
		return;
	job->waits_for = 0;
	settle_from(holder - 1, job->page, 0, cpu);
}

#endif
