/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Process scheduling: which process each CPU runs next, given the links, and which CPUs to tell.
 *
 * Links move at once; a process that is in a non-preemptive section keeps its CPU until it leaves the section.
 */
#ifndef LAXITY_DISPATCH_H
#define LAXITY_DISPATCH_H

#include "state.h"

/* Whether the process on `cpu` is in a non-preemptive section. */
LAXITY_FN int laxity_is_kept(struct laxity_core *core, laxity_u32 cpu)
{
	laxity_u32 process = laxity_cpu_at(core, cpu)->process;

	return process != LAXITY_NONE && laxity_task_at(core, process)->is_non_preemptive && !LAXITY_MUTANT(core, 35);
}

/* The task whose process is to run on `cpu` from now on; LAXITY_NONE: none of them. */
LAXITY_FN laxity_u32 laxity_next(struct laxity_core *core, laxity_u32 cpu)
{
	struct laxity_cpu *slot = laxity_cpu_at(core, cpu);

	if (cpu >= core->cpus)
		return LAXITY_NONE;
	return laxity_is_kept(core, cpu) ? slot->process : slot->linked;
}

/* The process of `task` enters a non-preemptive section; sections do not nest. It must have a CPU. */
LAXITY_FN int laxity_enter(struct laxity_core *core, laxity_u32 task)
{
	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	if (laxity_task_at(core, task)->on == LAXITY_NONE)
		return LAXITY_NOT_PENDING;
	laxity_task_at(core, task)->is_non_preemptive = 1;
	return 0;
}

/* It leaves the section: 1 if its CPU is to run another process now, 0 if not. */
LAXITY_FN int laxity_exit(struct laxity_core *core, laxity_u32 task)
{
	struct laxity_task *job = laxity_task_at(core, task);

	if (task >= core->tasks)
		return LAXITY_NO_SUCH;
	if (job->on == LAXITY_NONE)
		return LAXITY_NOT_PENDING;
	job->is_non_preemptive = 0;
	return laxity_cpu_at(core, job->on)->linked != task && !LAXITY_MUTANT(core, 36);
}

/*
 * Of the CPUs in `changed`, a bit each, those to be interrupted now: all but those that run what they should, and those
 * whose process is in a non-preemptive section, which looks again when it leaves that.
 */
LAXITY_SUB laxity_u64 laxity_kicks(struct laxity_core *core, laxity_u64 changed)
{
	laxity_u64 kicks = 0;
	laxity_u32 cpu;

	for (cpu = 0; cpu < LAXITY_CPUS; cpu++) {
		if (!(changed >> cpu & 1) || laxity_next(core, cpu) == laxity_cpu_at(core, cpu)->process)
			continue;
		kicks |= 1ull << cpu;
	}
	LAXITY_FORGET(core, kicks);
	return kicks;
}

#endif
