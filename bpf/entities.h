/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Links of jobs, and entities: a task and the interrupt threads that work for it, of which one member runs at a time.
 */
#ifndef LAXITY_ENTITIES_H
#define LAXITY_ENTITIES_H

#include "mapping.h"
#include "ready.h"
#include "state.h"

LAXITY_FN void laxity_make_ready(struct laxity_core *core, laxity_u32 task)
{
	struct laxity_task *job = laxity_task_at(core, task);

	if (job->occupant != LAXITY_NONE && !LAXITY_MUTANT(core, 25)) {
		job->state = LAXITY_HELD;
		laxity_stay_out(core, task);
		return;
	}
	job->state = LAXITY_READY;
	laxity_queue(core, task);
}

LAXITY_FN void laxity_link_to(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task)
{
	if (task != LAXITY_NONE) {
		laxity_task_at(core, task)->state = LAXITY_LINKED;
		laxity_task_at(core, task)->linked_to = cpu;
	}
	laxity_map(core, cpu, task);
	if (!LAXITY_MUTANT(core, 26))
		core->touched |= 1ull << (cpu & (LAXITY_CPUS - 1));
}

/*
 * The CPU that the process of `task` occupies, or that of the job it works for: they cannot run elsewhere before it is
 * switched out.
 */
LAXITY_FN laxity_u32 laxity_occupied_by(struct laxity_core *core, laxity_u32 task)
{
	struct laxity_task *job = laxity_task_at(core, task);

	if (job->on != LAXITY_NONE || job->owner == LAXITY_NONE || LAXITY_MUTANT(core, 27))
		return job->on;
	return laxity_task_at(core, job->owner)->on;
}

/* Links the job of `task`, just taken from the heap, in place of what is linked to `cpu`. */
LAXITY_FN void laxity_link(struct laxity_core *core, laxity_u32 task, laxity_u32 cpu)
{
	laxity_u32 displaced = laxity_cpu_at(core, cpu)->linked;
	laxity_u32 occupied = laxity_occupied_by(core, task);

	if (displaced != LAXITY_NONE) {
		laxity_task_at(core, displaced)->state = LAXITY_READY;
		if (!LAXITY_MUTANT(core, 28))
			laxity_queue(core, displaced);
	}
	if (occupied != LAXITY_NONE && occupied != cpu && !LAXITY_MUTANT(core, 29)) {
		/*
		 * Its process still occupies another CPU (a preemption on its way there, or a non-preemptive section): it can
		 * only go on there, so what is linked there moves here instead. That one has not started yet.
		 */
		laxity_u32 moved = laxity_cpu_at(core, occupied)->linked;

		laxity_link_to(core, occupied, task);
		laxity_link_to(core, cpu, LAXITY_MUTANT(core, 30) ? LAXITY_NONE : moved);
	} else {
		laxity_link_to(core, cpu, task);
	}
}

/* `thread` becomes the member of its entity that runs; a ready owner is held back, and a linked one hands over its CPU. */
LAXITY_SUB int laxity_go_before(struct laxity_core *core, laxity_u32 thread, laxity_u32 owner)
{
	struct laxity_task *owning = laxity_task_at(core, owner);

	owning->occupant = thread;
	if (owning->state == LAXITY_LINKED && !LAXITY_MUTANT(core, 31)) {
		owning->state = LAXITY_HELD;
		laxity_link_to(core, owning->linked_to, thread);
		return 0;
	}
	if (owning->state == LAXITY_READY && !LAXITY_MUTANT(core, 32)) {
		owning->state = LAXITY_HELD;
		laxity_unqueue(core, owner);
	}
	laxity_make_ready(core, thread);
	return 0;
}

/* The first interrupt thread that works for `owner` and waits for its turn; LAXITY_NONE. */
LAXITY_SUB int laxity_next_of(struct laxity_core *core, laxity_u32 owner)
{
	laxity_u32 round, next = LAXITY_NONE;

	/* From the last one, so that the first one remains: no round depends on the one before. */
	for (round = 0; round < LAXITY_TASKS; round++) {
		laxity_u32 at = LAXITY_MUTANT(core, 33) ? round : LAXITY_TASKS - 1 - round;
		struct laxity_task *task = laxity_task_at(core, at);

		if (task->owner == owner && task->state == LAXITY_HELD)
			next = at;
	}
	LAXITY_FORGET(core, next);
	return next;
}

/* `thread` has no work any more: the next member of its entity may run. */
LAXITY_FN int laxity_retire(struct laxity_core *core, laxity_u32 thread)
{
	laxity_u32 owner = laxity_task_at(core, thread)->owner, next;

	laxity_task_at(core, thread)->owner = LAXITY_NONE;
	/* Where another thread goes first, this one was held back by it. */
	if (owner == LAXITY_NONE || laxity_task_at(core, owner)->occupant != thread)
		return 0;
	laxity_task_at(core, owner)->occupant = LAXITY_NONE;
	next = laxity_next_of(core, owner);
	if (next != LAXITY_NONE)
		return laxity_go_before(core, next, owner);
	if (laxity_task_at(core, owner)->state == LAXITY_HELD && !LAXITY_MUTANT(core, 34))
		laxity_make_ready(core, owner);
	return 0;
}

#endif
