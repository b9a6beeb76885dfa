/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets of tasks carried out: server.h says what they are. Part of scheduler.bpf.c.
 *
 * A job that has used up its budget is suspended until it may use the next one. Under EDF it ranks by that one's deadline, under
 * fixed priorities it keeps its level. Jobs of a task follow one another: a job that is released before the last one is complete
 * has what that left. A non-preemptive section lasts no longer than the budget.
 *
 * What a thread executes is counted from `running` to `stopping`, and at each look in between.
 */
#ifndef LAXITY_BUDGETS_H
#define LAXITY_BUDGETS_H

#include "inherit.h"
#include "tasks.h"

/* What laxity_job.waits says: for nothing, for its next release, for its next budget, for an event that releases the next job. */
enum {
	WAITS_NOT,
	WAITS_RELEASE,
	WAITS_BUDGET,
	WAITS_EVENT,
};

/* Counts what the thread executed until now. */
LAXITY_INLINE void charge(struct laxity_job *job)
{
	u64 since = job->since, now;

	if (!since || !job->server.budget)
		return;
	job->since = now = bpf_ktime_get_ns();
	if (now > since)
		laxity_server_charge(&job->server, job->period, now - since, now);
}

/* The job of task `number` begins, with its budget and the priority of its task. */
LAXITY_INLINE void refill(u32 number, struct laxity_job *job)
{
	if (!job->server.budget)
		job->server.due = job->due;
	else if (job->release > job->idle_since)
		laxity_server_begin(&job->server, job->period, job->release);
	job->urgency = setting.by_task ? job->level : rank_of(job);
	job->of = number;
}

/* When the budget of the job that executes is used up; all ones: it is not, or has none. */
LAXITY_INLINE u64 exhausted_at(struct laxity_job *job)
{
	u64 since = job->since;

	if (!job->server.budget || !since || job->waits != WAITS_NOT)
		return ~0ull;
	return job->server.from > since ? since : since + job->server.left;
}

/* Whether the job, whose thread has a CPU, may not use the next budget yet. */
LAXITY_INLINE int is_exhausted(struct laxity_job *job)
{
	charge(job);
	return job->server.budget && job->server.from > bpf_ktime_get_ns() && job->waits == WAITS_NOT;
}

/* The job of task `number`, which has a budget and goes on, ranks by the deadline of its next budget if it has got that meanwhile. */
LAXITY_GLOBAL int rank_anew(s32 cpu, u32 number)
{
	struct laxity_job *job = job_of(number);
	struct laxity_note note = {};

	if (!job || setting.by_task || job->waits != WAITS_NOT)
		return 0;
	urgency_of(number, job, &note);
	if (note.number == job->urgency && note.extra == job->of)
		return 0;
	job->urgency = note.number;
	job->of = note.extra;
	return happen(&note, HAPPENS_PRIORITY, cpu, number, job);
}

/* The job on `cpu` has used up its budget: it is suspended until its deadline. Its thread is to be kept. */
LAXITY_INLINE void throttle(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job)
{
	struct laxity_entry *entry = entry_of(job);

	if (happen(note, HAPPENS_SUSPEND, cpu, number, job) < 0) {
		FAIL("the end of a budget was refused", job->pid);
		return;
	}
	job->throttled++;
	if (entry)
		entry->throttled = job->throttled;
	job->waits = WAITS_BUDGET;
}

/* The job of task `number` has a new budget, which is due, unless another CPU gives it at this moment. */
LAXITY_INLINE void replenish(u32 number, struct laxity_job *job)
{
	struct laxity_note note = {};
	s32 cpu = bpf_get_smp_processor_id();

	if (__sync_val_compare_and_swap(&job->waits, WAITS_BUDGET, WAITS_NOT) != WAITS_BUDGET)
		return;
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
