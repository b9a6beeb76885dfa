/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Job scheduling of one cluster: which job is linked to which CPU.
 *
 * Policy: the m most urgent jobs that may run are linked to the m CPUs, at every event or at quantum boundaries; paper
 * 002, section 3. One cluster of all CPUs is global scheduling, clusters of one CPU are partitioned scheduling.
 * Guarantee: the links after each event are those of `EventDriven` and `QuantumDriven` of laxity-policy.
 * Not handled: time, switching of processes and locks, which are the driver's.
 *
 * The driver reports every event of an instant, calls laxity_decide, then kicks the CPUs that laxity_announce names.
 * Where a function can fail it returns 0 or an enum laxity_error.
 */
#ifndef LAXITY_POLICY_H
#define LAXITY_POLICY_H

#include "entities.h"
#include "mapping.h"
#include "ready.h"
#include "state.h"

/*
 * A job of `task` is ready for the first time. `major`: its absolute deadline in ns or its own priority; of no account
 * under LAXITY_BY_TASK.
 */
LAXITY_FN int laxity_release(struct laxity_core *core, laxity_u32 task, laxity_u64 major)
{
	struct laxity_task *job = laxity_task_at(core, task);

	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	if (job->state != LAXITY_INACTIVE || laxity_is_second(core, task))
		return LAXITY_IS_PENDING;
	job->major = core->rule == LAXITY_BY_TASK && !LAXITY_MUTANT(core, 6) ? job->level : major;
	job->tie = LAXITY_MUTANT(core, 7) ? task : job->position;
	laxity_make_ready(core, task);
	return 0;
}

/* The job of `task`, whose process is or was on `cpu`, is no longer to run: `to` is INACTIVE or SUSPENDED. */
LAXITY_SUB int laxity_leave(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task, laxity_u32 to)
{
	struct laxity_task *job = laxity_task_at(core, task);
	struct laxity_cpu *slot = laxity_cpu_at(core, cpu);

	if (task >= core->tasks || cpu >= core->cpus)
		return LAXITY_NO_SUCH;
	switch (job->state) {
	case LAXITY_LINKED:
		if (job->linked_to != cpu)
			return LAXITY_ELSEWHERE;
		if (!LAXITY_MUTANT(core, 8))
			laxity_link_to(core, cpu, LAXITY_NONE);
		/* It loses its link without being told. */
		if (!LAXITY_MUTANT(core, 9))
			slot->announced = LAXITY_NONE;
		break;
	case LAXITY_READY:
		/* Live, Linux may run a job that has no link where a linked one waits for something unknown. */
		if (!LAXITY_MUTANT(core, 10))
			laxity_set_aside(core, task);
		break;
	case LAXITY_HELD:
		/* Its process was not switched out yet when its interrupt thread took over. */
		break;
	default:
		return LAXITY_NOT_PENDING;
	}
	job->state = to;
	if (job->on == cpu && !LAXITY_MUTANT(core, 11))
		slot->process = LAXITY_NONE;
	if (!LAXITY_MUTANT(core, 12))
		job->on = LAXITY_NONE;
	if (!LAXITY_MUTANT(core, 37))
		job->last_cpu = cpu;
	if (!LAXITY_MUTANT(core, 13))
		job->is_non_preemptive = 0;
	laxity_part(core, task, to);
	laxity_retire(core, task);
	return 0;
}

/* The job of `task` completed on `cpu`. */
LAXITY_FN int laxity_complete(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task)
{
	return laxity_leave(core, cpu, task, LAXITY_INACTIVE);
}

/* The job of `task` suspended itself on `cpu`. */
LAXITY_FN int laxity_suspend(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task)
{
	return laxity_leave(core, cpu, task, LAXITY_SUSPENDED);
}

/* The suspended job of `task` is ready again. */
LAXITY_FN int laxity_resume(struct laxity_core *core, laxity_u32 task)
{
	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	if (laxity_task_at(core, task)->state != LAXITY_SUSPENDED || laxity_is_second(core, task))
		return LAXITY_NOT_SUSPENDED;
	laxity_make_ready(core, task);
	return 0;
}

/* The effective priority of the job of `task`, or of an active interrupt thread, is this from now on: inheritance. */
LAXITY_FN int laxity_prioritize(struct laxity_core *core, laxity_u32 task, laxity_u64 major, laxity_u32 tie)
{
	struct laxity_task *job = laxity_task_at(core, task);

	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	/* A queue is ordered by its key. */
	if (job->state == LAXITY_READY && !LAXITY_MUTANT(core, 14))
		laxity_set_aside(core, task);
	if ((job->state != LAXITY_SUSPENDED || !LAXITY_MUTANT(core, 15)) &&
	    (job->state != LAXITY_HELD || !LAXITY_MUTANT(core, 16))) {
		job->major = major;
		job->tie = tie;
	}
	if (job->state == LAXITY_READY && !LAXITY_MUTANT(core, 14))
		laxity_queue(core, task);
	if (job->state == LAXITY_LINKED && !LAXITY_MUTANT(core, 17))
		laxity_map(core, job->linked_to, task);
	return 0;
}

/*
 * The idle interrupt thread `thread` has work. If it works on behalf of `owner` the two are one entity: the thread goes
 * before its owner, takes over its CPU, and they never run side by side (paper 000, section III). LAXITY_NONE: of no task.
 */
LAXITY_FN int laxity_wake(struct laxity_core *core, laxity_u32 thread, laxity_u32 owner, laxity_u64 major, laxity_u32 tie)
{
	struct laxity_task *work = laxity_task_at(core, thread);

	if (thread >= core->tasks || owner == thread || (owner != LAXITY_NONE && owner >= core->tasks))
		return LAXITY_NO_SUCH;
	if (work->state != LAXITY_INACTIVE || laxity_is_second(core, thread))
		return LAXITY_IS_PENDING;
	work->major = major;
	work->tie = tie;
	if (owner == LAXITY_NONE) {
		laxity_make_ready(core, thread);
		return 0;
	}
	work->owner = owner;
	if (laxity_task_at(core, owner)->occupant != LAXITY_NONE && !LAXITY_MUTANT(core, 18))
		work->state = LAXITY_HELD;
	else
		laxity_go_before(core, thread, owner);
	return 0;
}

/* The effective priority of the interrupt threads that work for `owner`, of which one goes first, is this from now on. */
LAXITY_SUB int laxity_prioritize_threads(struct laxity_core *core, laxity_u32 owner, laxity_u64 major, laxity_u32 tie)
{
	laxity_u32 thread;

	for (thread = 0; thread < LAXITY_TASKS; thread++) {
		struct laxity_task *work = laxity_task_at(core, thread);

		/* Those that wait for their turn are in no heap. */
		if (work->owner != owner || work->state != LAXITY_HELD || LAXITY_MUTANT(core, 38))
			continue;
		work->major = major;
		work->tie = tie;
	}
	return laxity_prioritize(core, laxity_task_at(core, owner)->occupant, major, tie);
}

/* As laxity_prioritize, of a job and of all interrupt threads that work for it. */
LAXITY_FN int laxity_lead(struct laxity_core *core, laxity_u32 owner, laxity_u64 major, laxity_u32 tie)
{
	if (owner >= core->tasks)
		return LAXITY_NO_SUCH;
	if (laxity_task_at(core, owner)->occupant != LAXITY_NONE && !LAXITY_MUTANT(core, 39))
		laxity_prioritize_threads(core, owner, major, tie);
	return laxity_prioritize(core, owner, major, tie);
}

/* The process of `task` (LAXITY_NONE: the idle process) is now the one on `cpu`. */
LAXITY_FN int laxity_switch(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task)
{
	struct laxity_cpu *slot = laxity_cpu_at(core, cpu);
	laxity_u32 before = slot->process;

	if (cpu >= core->cpus || (task != LAXITY_NONE && task >= core->tasks))
		return LAXITY_NO_SUCH;
	if (task != LAXITY_NONE && task != before && laxity_task_at(core, task)->on != LAXITY_NONE)
		return LAXITY_ELSEWHERE;
	if (before != LAXITY_NONE) {
		laxity_task_at(core, before)->on = LAXITY_NONE;
		if (!LAXITY_MUTANT(core, 19))
			laxity_task_at(core, before)->last_cpu = cpu;
	}
	slot->process = task;
	if (task != LAXITY_NONE) {
		laxity_task_at(core, task)->on = cpu;
		if (!LAXITY_MUTANT(core, 19))
			laxity_task_at(core, task)->last_cpu = cpu;
	}
	return 0;
}

/* Quantum number `quantum` begins on `cpu`. Event-driven scheduling ignores it. */
LAXITY_FN int laxity_tick(struct laxity_core *core, laxity_u32 cpu, laxity_u64 quantum)
{
	laxity_u64 bit = 1ull << (cpu & (LAXITY_CPUS - 1));

	if (cpu >= core->cpus)
		return LAXITY_NO_SUCH;
	if (core->invocation == LAXITY_EVENT_DRIVEN)
		return 0;
	/*
	 * A later tick handler of the same quantum must not link again: the CPUs whose handlers are over would enact it a
	 * quantum late.
	 */
	if (core->invocation == LAXITY_ALIGNED && quantum < core->next_quantum && !LAXITY_MUTANT(core, 20))
		return 0;
	if (core->ticked_mask & bit)
		return LAXITY_TICKED;
	core->next_quantum = quantum + 1;
	core->ticked_mask |= bit;
	core->ticked[core->ticks & (LAXITY_CPUS - 1)] = cpu;
	core->ticks++;
	return 0;
}

/* Whether task `top`, the first that is ready, is less urgent than what is linked to `lowest`. */
LAXITY_FN int laxity_gives_not_way(struct laxity_core *core, struct laxity_cpu *lowest, laxity_u32 top)
{
	struct laxity_key *key = laxity_key_of(&core->ready, top);

	if (lowest->linked == LAXITY_NONE || lowest->key_major > key->major)
		return 0;
	if (lowest->key_major < key->major)
		return 1;
	return lowest->key_minor < key->minor || LAXITY_MUTANT(core, 21);
}

/* Links the most urgent ready job to the CPU that gives way first, or to `only` that one; whether it did. */
LAXITY_SUB int laxity_assign(struct laxity_core *core, laxity_u32 only)
{
	laxity_u32 cpu = only == LAXITY_NONE ? laxity_lowest(core) : only, round = 0, top;
	struct laxity_cpu *lowest = laxity_cpu_at(core, cpu);

	do {
		top = laxity_ready_first(core);
		if (top == LAXITY_NONE || laxity_gives_not_way(core, lowest, top))
			return 0;
		if (!laxity_withhold(core, top))
			break;
		top = LAXITY_NONE;
	} while (LAXITY_GOES_ON(round, LAXITY_TASKS));
	if (top == LAXITY_NONE)
		return 0;
	if (lowest->linked == LAXITY_NONE && only == LAXITY_NONE && !LAXITY_MUTANT(core, 22)) {
		/* Any idle CPU will do, and the job's last one still has its cache. */
		laxity_u32 last = laxity_task_at(core, top)->last_cpu;

		if (laxity_cpu_at(core, last)->linked == LAXITY_NONE)
			cpu = last;
	}
	laxity_unqueue(core, top);
	laxity_link(core, top, cpu);
	return 1;
}

/*
 * One round of a decision, where one is due: links a job if a CPU has a less urgent one; whether there may be another.
 * Each round links a job that is less urgent than the ones before, so that no CPU has its turn twice.
 */
LAXITY_SUB int laxity_decide_round(struct laxity_core *core)
{
	laxity_u32 only = LAXITY_NONE, first = core->first_tick;
	int may_link = core->invocation == LAXITY_EVENT_DRIVEN || first < core->ticks || LAXITY_MUTANT(core, 23);

	if (may_link && core->invocation == LAXITY_STAGGERED && !LAXITY_MUTANT(core, 24)) {
		only = core->ticked[first & (LAXITY_CPUS - 1)];
		core->first_tick = first + 1;
	}
	if (may_link && (laxity_assign(core, only) || only != LAXITY_NONE))
		return 1;
	core->ticks = core->first_tick = 0;
	core->ticked_mask = 0;
	return 0;
}

/* All rounds of a decision: each CPU has its turn once, and one more finds that nothing is left to do. */
LAXITY_SUB int laxity_decide(struct laxity_core *core)
{
	laxity_u32 round = 0;

	while (LAXITY_GOES_ON(round, LAXITY_CPUS + 1) && laxity_decide_round(core))
		;
	return 0;
}

/* The CPUs, a bit each, whose links differ from those announced before. */
LAXITY_SUB laxity_u64 laxity_announce(struct laxity_core *core)
{
	laxity_u64 changed = 0, touched = core->touched;
	laxity_u32 cpu;

	for (cpu = 0; cpu < LAXITY_CPUS; cpu++) {
		struct laxity_cpu *slot = laxity_cpu_at(core, cpu);

		if (!(touched >> cpu & 1) || slot->announced == slot->linked)
			continue;
		slot->announced = slot->linked;
		changed |= 1ull << cpu;
	}
	core->touched = 0;
	LAXITY_FORGET(core, changed);
	return changed;
}

/* The level of all later jobs of `task` under LAXITY_BY_TASK, and its place in the list of all tasks. */
LAXITY_FN int laxity_set_rank(struct laxity_core *core, laxity_u32 task, laxity_u64 level, laxity_u32 position)
{
	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	laxity_task_at(core, task)->level = level ? level : 1;
	laxity_task_at(core, task)->position = position;
	return 0;
}

/* All CPUs idle, no job pending; every task of the least urgent level until laxity_set_rank. */
LAXITY_SUB int laxity_init(struct laxity_core *core, laxity_u32 tasks, laxity_u32 cpus, laxity_u32 rule,
			   laxity_u32 invocation)
{
	laxity_u32 at;

	if (!tasks || tasks > LAXITY_TASKS || !cpus || cpus > LAXITY_CPUS)
		return LAXITY_NO_SUCH;
	if (rule > LAXITY_BY_TASK || invocation > LAXITY_STAGGERED)
		return LAXITY_NO_SUCH;
	core->next_quantum = core->touched = core->ticked_mask = 0;
	core->ready.count = core->ticks = core->first_tick = 0;
	core->tasks = tasks;
	core->cpus = cpus;
	core->rule = rule;
	core->invocation = invocation;
	core->final = LAXITY_CPUS;
	for (at = 0; at < LAXITY_MATCHES; at++)
		core->final >>= 1u << at < cpus;
	for (at = 0; at < LAXITY_TASKS; at++) {
		struct laxity_task *task = laxity_task_at(core, at);

		task->major = 0;
		task->tie = task->position = at;
		task->level = ~0ull;
		task->state = LAXITY_INACTIVE;
		task->linked_to = task->last_cpu = task->is_non_preemptive = 0;
		core->ready.key[at & (LAXITY_TASKS - 1)].at = 0;
		task->on = task->owner = task->occupant = LAXITY_NONE;
	}
	for (at = 0; at < LAXITY_CPUS; at++) {
		struct laxity_cpu *cpu = laxity_cpu_at(core, at);

		cpu->key_major = at < cpus ? ~0ull : 0;
		cpu->key_minor = at < cpus ? ~0ull - at : 0;
		cpu->linked = cpu->announced = cpu->process = LAXITY_NONE;
		core->winner[LAXITY_CPUS + at] = at;
	}
	for (at = LAXITY_CPUS - 1; at > 0; at--)
		laxity_play(core, at);
	return 0;
}

#endif
