/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Tasks by a key, of which the least comes first: a binary heap. Of a cluster those whose jobs are ready and have no link, by
 * their priorities; and all that wait for a time, by that. Freestanding like the core.
 */
#ifndef LAXITY_HEAP_H
#define LAXITY_HEAP_H

#include "state.h"

#define LAXITY_HEAP_MASK (2 * LAXITY_TASKS - 1)

LAXITY_FN laxity_u32 laxity_heap_at(struct laxity_heap *heap, laxity_u32 at)
{
	return heap->task[at & LAXITY_HEAP_MASK];
}

LAXITY_FN struct laxity_key *laxity_key_of(struct laxity_heap *heap, laxity_u32 task)
{
	return &heap->key[task & (LAXITY_TASKS - 1)];
}

/* Whether task `a`, which is in the heap, comes before task `b`, which is, too: a total order, as no two have the same key. */
LAXITY_FN int laxity_comes_before(struct laxity_heap *heap, laxity_u32 a, laxity_u32 b)
{
	struct laxity_key *first = laxity_key_of(heap, a), *second = laxity_key_of(heap, b);

	return first->major < second->major || (first->major == second->major && first->minor < second->minor);
}

LAXITY_FN void laxity_heap_place(struct laxity_heap *heap, laxity_u32 at, laxity_u32 task)
{
	heap->task[at & LAXITY_HEAP_MASK] = task;
	laxity_key_of(heap, task)->at = at;
}

/* Moves `task` from the free position `at` towards the root until its parent comes before it. */
LAXITY_SUB int laxity_sift_up(struct laxity_heap *heap, laxity_u32 at, laxity_u32 task)
{
	int level;

	for (level = 0; level < LAXITY_LEVELS; level++) {
		laxity_u32 parent = laxity_heap_at(heap, at / 2);

		if (at <= 1 || laxity_comes_before(heap, parent, task))
			break;
		laxity_heap_place(heap, at, parent);
		at /= 2;
		LAXITY_FORGET(heap, at);
	}
	laxity_heap_place(heap, at, task);
	return 0;
}

/* Moves `task` from the free position `at` towards the leaves until no child comes before it. */
LAXITY_SUB int laxity_sift_down(struct laxity_heap *heap, laxity_u32 at, laxity_u32 task)
{
	int level;

	for (level = 0; level < LAXITY_LEVELS; level++) {
		laxity_u32 below = 2 * at;
		laxity_u32 child, other;

		if (below > heap->count)
			break;
		child = laxity_heap_at(heap, below);
		other = laxity_heap_at(heap, below + 1);
		if (below < heap->count && laxity_comes_before(heap, other, child) && !LAXITY_MUTANT(heap, 3)) {
			child = other;
			below++;
		}
		LAXITY_FORGET(heap, below);
		if (laxity_comes_before(heap, task, child))
			break;
		laxity_heap_place(heap, at, child);
		at = below;
		LAXITY_FORGET(heap, at);
	}
	laxity_heap_place(heap, at, task);
	return 0;
}

/* Adds `task`, which is not in the heap. Of two with the same `major` the one with the lesser `minor` comes first. */
LAXITY_FN void laxity_heap_add(struct laxity_heap *heap, laxity_u32 task, laxity_u64 major, laxity_u64 minor)
{
	laxity_key_of(heap, task)->major = major;
	laxity_key_of(heap, task)->minor = minor;
	heap->count++;
	laxity_sift_up(heap, heap->count, task);
}

/* Takes `task` out of the heap, in which it is. The last one takes its place. */
LAXITY_SUB int laxity_heap_remove(struct laxity_heap *heap, laxity_u32 task)
{
	laxity_u32 at = laxity_key_of(heap, task)->at;
	laxity_u32 last = laxity_heap_at(heap, heap->count);

	laxity_key_of(heap, task)->at = 0;
	heap->count--;
	if (last == task)
		return 0;
	/* It moves at most one way: where it moved up, what is below was below its parent. */
	laxity_heap_place(heap, at, last);
	if (!LAXITY_MUTANT(heap, 4))
		laxity_sift_up(heap, at, last);
	laxity_sift_down(heap, laxity_key_of(heap, last)->at, last);
	return 0;
}

/* The first task; LAXITY_NONE. */
LAXITY_FN laxity_u32 laxity_heap_top(struct laxity_heap *heap)
{
	return heap->count ? heap->task[1] : LAXITY_NONE;
}

/* The heap has `task` for that time from now on, LAXITY_NEVER: not at all; unless it has it for an earlier one and `keeps` that. */
LAXITY_FN void laxity_heap_set(struct laxity_heap *heap, laxity_u32 task, laxity_u64 time, laxity_u32 keeps)
{
	struct laxity_key *key = laxity_key_of(heap, task);

	if (key->at && keeps && key->major <= time)
		return;
	if (key->at)
		laxity_heap_remove(heap, task);
	if (time != LAXITY_NEVER)
		laxity_heap_add(heap, task, time, task);
}

/* The first time; LAXITY_NEVER: there is none. */
LAXITY_FN laxity_u64 laxity_heap_time(struct laxity_heap *heap)
{
	laxity_u32 task = laxity_heap_top(heap);

	return task == LAXITY_NONE ? LAXITY_NEVER : laxity_key_of(heap, task)->major;
}

/* Takes the first task out whose time has come; LAXITY_NONE. */
LAXITY_FN laxity_u32 laxity_heap_take(struct laxity_heap *heap, laxity_u64 now)
{
	laxity_u32 task = laxity_heap_top(heap);

	if (task == LAXITY_NONE || laxity_key_of(heap, task)->major > now)
		return LAXITY_NONE;
	laxity_heap_remove(heap, task);
	return task;
}

#endif
