/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The ready queue of a cluster, coarse, fine or hierarchical: a heap, or brackets.
 *
 * A heap changes under the lock of the links. So do brackets, but for arrivals: a job may be put in before that lock is taken
 * (laxity_arrive_early). Until its arrival is applied it is not there for decisions: one that finds it first takes it out again
 * (laxity_withhold), and it is put in once more when its arrival is applied. So links are those of a coarse queue, in the order
 * in which the events had the lock.
 */
#ifndef LAXITY_READY_H
#define LAXITY_READY_H

#include "bracket.h"
#include "heap.h"
#include "state.h"

/* The first job of the queue; LAXITY_NONE. */
LAXITY_FN laxity_u32 laxity_ready_first(struct laxity_core *core)
{
	return LAXITY_READY(core) == LAXITY_COARSE ? laxity_heap_top(&core->ready) : laxity_first_in(core);
}

/* Whether `task`, the first of the queue, is not there yet: it is in the queue no more then. */
LAXITY_FN int laxity_withhold(struct laxity_core *core, laxity_u32 task)
{
	if (LAXITY_READY(core) == LAXITY_COARSE || LAXITY_MUTANT(core, 40))
		return 0;
	if (!(LAXITY_READ(laxity_key_of(&core->ready, task)->at) & LAXITY_EARLY))
		return 0;
	laxity_take_out(core, task,
			laxity_task_at(core, task)->state == LAXITY_SUSPENDED ? LAXITY_OUT_SUSPENDED : LAXITY_OUT_INACTIVE);
	return 1;
}

/* The job of `task` waits for a link from now on. */
LAXITY_FN void laxity_queue(struct laxity_core *core, laxity_u32 task)
{
	if (LAXITY_READY(core) == LAXITY_COARSE)
		laxity_heap_add(&core->ready, task, laxity_task_at(core, task)->major, laxity_minor(core, task));
	else
		laxity_put_in(core, task, laxity_task_at(core, task)->major, laxity_minor(core, task));
}

/* It does not wait for a link any more. The job is pending still. */
LAXITY_FN void laxity_unqueue(struct laxity_core *core, laxity_u32 task)
{
	if (LAXITY_READY(core) == LAXITY_COARSE)
		laxity_heap_remove(&core->ready, task);
	else
		laxity_take_out(core, task, LAXITY_OUT_PENDING);
}

/*
 * The job of `task` arrives, under the lock; whether that comes second, as another CPU has claimed it. The job is no more to be
 * claimed by others.
 */
LAXITY_FN int laxity_is_second(struct laxity_core *core, laxity_u32 task)
{
	laxity_u64 *at = &laxity_key_of(&core->ready, task)->at, leaf;

	if (LAXITY_READY(core) == LAXITY_COARSE || LAXITY_MUTANT(core, 41))
		return 0;
	leaf = LAXITY_READ(*at);
	if (laxity_place_of(leaf) < LAXITY_OUT_PENDING)
		leaf = __sync_val_compare_and_swap(at, leaf, laxity_with_place(leaf, LAXITY_OUT_PENDING));
	return laxity_place_of(leaf) == LAXITY_OUT_CLAIMED;
}

/* The job of `task`, which arrives, is held back: it may be in the queue early. */
LAXITY_FN void laxity_stay_out(struct laxity_core *core, laxity_u32 task)
{
	if (LAXITY_READY(core) != LAXITY_COARSE && !LAXITY_MUTANT(core, 44))
		laxity_take_out(core, task, LAXITY_OUT_PENDING);
}

/* The job of `task` is not pending any more, of that state from now on: it leaves the queue, and may arrive. */
LAXITY_FN void laxity_part(struct laxity_core *core, laxity_u32 task, laxity_u32 state)
{
	if (LAXITY_READY(core) != LAXITY_COARSE)
		laxity_take_out(core, task, state == LAXITY_SUSPENDED ? LAXITY_OUT_SUSPENDED : LAXITY_OUT_INACTIVE);
}

/* The job of `task`, which is in the queue, is about to have another key, or to part: laxity_queue follows, or laxity_part. */
LAXITY_FN void laxity_set_aside(struct laxity_core *core, laxity_u32 task)
{
	/* In a bracket a key changes in place, and a job is taken out when it parts. */
	if (LAXITY_READY(core) == LAXITY_COARSE)
		laxity_heap_remove(&core->ready, task);
}

/*
 * Without the lock: the job of `task` arrives on `cpu`, by that key, and its place is `from` if that makes sense. Puts it into the
 * queue early, if it can, and returns its leaf; else 0. Then, with the lock: laxity_expect, the arrival itself, laxity_end_early.
 */
LAXITY_FN laxity_u64 laxity_arrive_early(struct laxity_core *core, laxity_u32 task, laxity_u32 from, laxity_u32 cpu,
					 laxity_u64 major, laxity_u32 tie)
{
	struct laxity_task *job = laxity_task_at(core, task);
	laxity_u64 claimed;

	/* One that is held back then waits in no queue. A change meanwhile is seen when the arrival is applied. */
	if (job->occupant != LAXITY_NONE)
		return 0;
	claimed = laxity_claim(core, task, from);
	if (!claimed)
		return 0;
	return laxity_put_early(core, task, claimed, cpu < core->cpus ? cpu : job->last_cpu, major,
				laxity_minor_of(core, tie, task));
}

/* A job that was put in early, with that leaf, arrives next; 0: none was. */
LAXITY_FN void laxity_expect(struct laxity_core *core, laxity_u64 leaf)
{
	if (LAXITY_READY(core) != LAXITY_COARSE)
		core->foreseen = leaf;
}

/* The arrival of a job that was put in early is through: if it was not applied, the job is in the queue no more. */
LAXITY_FN void laxity_end_early(struct laxity_core *core, laxity_u32 task)
{
	laxity_expect(core, 0);
	if (!LAXITY_MUTANT(core, 48))
		laxity_withhold(core, task);
}

/* Whether a job waits for a link, or is about to. */
LAXITY_FN int laxity_is_one_ready(struct laxity_core *core)
{
	return laxity_ready_first(core) != LAXITY_NONE;
}

#endif
