/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets of tasks: hard constant bandwidth servers. Part of scheduler.bpf.c.
 *
 * Policy: a job has the task's budget of CPU time at its release. If it uses that up it is suspended until its deadline, and
 * then has the budget anew and a deadline a period later (Abeni & Buttazzo, RTSS 1998, with the hard reservations of Rajkumar
 * et al., MMCN 1998; cited from memory). Under fixed priorities it keeps its level.
 * Guarantee: a task uses no more than its budget in each period, but for the time that it takes to interrupt its CPU, however
 * long its code executes. A non-preemptive section lasts no longer than the budget.
 *
 * What a thread executes is counted from `running` to `stopping`, and at each look in between.
 */
#ifndef LAXITY_BUDGETS_H
#define LAXITY_BUDGETS_H

#include "inherit.h"
#include "tasks.h"

/* What laxity_job.waits says: for nothing, for its next release, for its next budget. */
enum {
	WAITS_NOT,
	WAITS_RELEASE,
	WAITS_BUDGET,
};

/* Counts what the thread executed until `now`. */
LAXITY_INLINE void charge(struct laxity_job *job, u64 now)
{
	u64 used;

	if (!job->since)
		return;
	used = now > job->since ? now - job->since : 0;
	job->left = used < job->left ? job->left - used : 0;
	job->since = now;
}

/* The job of task `number` begins, with a whole budget and the priority of its task. */
LAXITY_INLINE void refill(u32 number, struct laxity_job *job)
{
	job->left = job->budget;
	job->due = job->release + job->deadline;
	job->urgency = setting.by_task ? job->level : job->due;
	job->of = number;
}

/* When the budget of the job that executes is used up; all ones: it is not, or has none. */
LAXITY_INLINE u64 exhausted_at(struct laxity_job *job)
{
	u64 since = job->since;

	return job->budget && since && job->waits == WAITS_NOT ? since + job->left : ~0ull;
}

/* Whether the job, whose thread has a CPU, has used up its budget. */
LAXITY_INLINE int is_exhausted(struct laxity_job *job)
{
	charge(job, bpf_ktime_get_ns());
	return job->budget && !job->left && job->waits == WAITS_NOT;
}

/* The job on `cpu` has used up its budget: it is suspended until its deadline. Its thread is to be kept. */
LAXITY_INLINE void throttle(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job)
{
	if (happen(note, HAPPENS_SUSPEND, cpu, number, job) < 0) {
		FAIL("the end of a budget was refused", job->pid);
		return;
	}
	job->throttled++;
	job->waits = WAITS_BUDGET;
}

/* The job of task `number` has a new budget, which is due, unless another CPU gives it at this moment. */
LAXITY_INLINE void replenish(u32 number, struct laxity_job *job)
{
	struct laxity_note note = {};
	s32 cpu = bpf_get_smp_processor_id();

	if (__sync_val_compare_and_swap(&job->waits, WAITS_BUDGET, WAITS_NOT) != WAITS_BUDGET)
		return;
	job->left = job->budget;
	job->due += job->period;
	urgency_of(number, job, &note);
	job->urgency = note.number;
	job->of = note.extra;
	if (!setting.by_task)
		happen_here(&note, HAPPENS_PRIORITY, cpu, number, job);
	note.extra = 0;
	if (happen_here(&note, HAPPENS_RESUME, cpu, number, job) < 0)
		FAIL("a new budget was refused", job->pid);
	/* Its thread left meanwhile. */
	if (!job->pid)
		happen_here(&note, HAPPENS_FORGET, cpu, number, job);
}

#endif
