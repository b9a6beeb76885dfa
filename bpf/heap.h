/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Ready jobs that have no link: a binary heap. Any queue would do for the links, because jobs are totally ordered.
 */
#ifndef LAXITY_HEAP_H
#define LAXITY_HEAP_H

#include "state.h"

#define LAXITY_HEAP_MASK (2 * LAXITY_TASKS - 1)

LAXITY_FN laxity_u32 laxity_heap_at(struct laxity_core *core, laxity_u32 at)
{
	return core->heap[at & LAXITY_HEAP_MASK];
}

LAXITY_FN void laxity_heap_place(struct laxity_core *core, laxity_u32 at, laxity_u32 task)
{
	core->heap[at & LAXITY_HEAP_MASK] = task;
	laxity_task_at(core, task)->queued_at = at;
}

/* Moves `task` from the free position `at` towards the root until its parent is more urgent. */
LAXITY_SUB int laxity_sift_up(struct laxity_core *core, laxity_u32 at, laxity_u32 task)
{
	int level;

	for (level = 0; level < LAXITY_LEVELS; level++) {
		laxity_u32 parent = laxity_heap_at(core, at / 2);

		if (at <= 1 || laxity_precedes(core, parent, task))
			break;
		laxity_heap_place(core, at, parent);
		at /= 2;
		LAXITY_FORGET(core, at);
	}
	laxity_heap_place(core, at, task);
	return 0;
}

/* Moves `task` from the free position `at` towards the leaves until no child is more urgent. */
LAXITY_SUB int laxity_sift_down(struct laxity_core *core, laxity_u32 at, laxity_u32 task)
{
	int level;

	for (level = 0; level < LAXITY_LEVELS; level++) {
		laxity_u32 below = 2 * at;
		laxity_u32 child, other;

		if (below > core->queued)
			break;
		child = laxity_heap_at(core, below);
		other = laxity_heap_at(core, below + 1);
		if (below < core->queued && laxity_precedes(core, other, child) && !LAXITY_MUTANT(core, 3)) {
			child = other;
			below++;
		}
		LAXITY_FORGET(core, below);
		if (laxity_precedes(core, task, child))
			break;
		laxity_heap_place(core, at, child);
		at = below;
		LAXITY_FORGET(core, at);
	}
	laxity_heap_place(core, at, task);
	return 0;
}

LAXITY_FN void laxity_queue(struct laxity_core *core, laxity_u32 task)
{
	core->queued++;
	laxity_sift_up(core, core->queued, task);
}

/* Takes the job of `task` out of the heap, in which it is. The last one takes its place. */
LAXITY_SUB int laxity_unqueue(struct laxity_core *core, laxity_u32 task)
{
	laxity_u32 at = laxity_task_at(core, task)->queued_at;
	laxity_u32 last = laxity_heap_at(core, core->queued);

	laxity_task_at(core, task)->queued_at = 0;
	core->queued--;
	if (last == task)
		return 0;
	/* It moves at most one way: where it moved up, what is below was below its parent. */
	laxity_heap_place(core, at, last);
	if (!LAXITY_MUTANT(core, 4))
		laxity_sift_up(core, at, last);
	laxity_sift_down(core, laxity_task_at(core, last)->queued_at, last);
	return 0;
}

/* The most urgent ready job without a link; LAXITY_NONE. */
LAXITY_FN laxity_u32 laxity_top(struct laxity_core *core)
{
	return core->queued ? core->heap[1] : LAXITY_NONE;
}

#endif
