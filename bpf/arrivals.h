/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs that are not released once a period. Part of scheduler.bpf.c.
 *
 * Policy: the thread of such a task says in its page, before its job is complete, when the next one is released and due; or that
 * an event releases it: a wake-up of the thread, from whatever it waits for. Events may come in bursts; a job that one
 * releases is due a period after the last one at the earliest, so that others see a sporadic task (the virtual releases of
 * rate-based execution: Jeffay & Goddard, RTSS 1999; cited from memory). It may execute at once. A task of the same process that
 * wakes the thread may say in its own page when that job is released and due: what sends the tokens of a graph knows both.
 * Guarantee: releases of a task never go back.
 */
#ifndef LAXITY_ARRIVALS_H
#define LAXITY_ARRIVALS_H

#include "budgets.h"
#include "tasks.h"

/* What laxity_entry.is_complete says: the job is complete; it is once its thread sleeps; each is, for ever. */
enum {
	COMPLETE_NOT,
	COMPLETE,
	COMPLETE_ASLEEP,
	COMPLETE_EACH,
};
/* What laxity_entry.is_non_preemptive is above, where the thread says of that entry's job when it is released and due. */
#define SAYS_OF 2u

/* When the job of a task that is released now is due. `entry` is where its thread says so; 0: nowhere. */
LAXITY_INLINE u64 due_of(struct laxity_entry *entry, struct laxity_job *job)
{
	u64 due = job->release + job->deadline;

	/* One with a budget ranks by the deadline of that. */
	if (!job->is_told || !entry || job->server.budget)
		return due;
	if (entry->next)
		return entry->due ? entry->due : due;
	return due < job->due + job->period ? job->due + job->period : due;
}

/* A job is complete, and its task waits for the next release, or for an event if its thread `sleeps`; else that is there. */
LAXITY_INLINE void await_next(struct laxity_entry *entry, struct laxity_job *job, u64 sleeps)
{
	u64 next = job->release + job->period;

	if (job->is_told && entry) {
		next = entry->next;
		if (!next && sleeps) {
			job->waits = WAITS_EVENT;
			return;
		}
		if (!next)
			next = bpf_ktime_get_ns();
		next = next > job->release ? next : job->release;
	}
	job->release = next;
	job->waits = WAITS_RELEASE;
}

/* The entry of the thread that wakes `job`, if that says when its job is released and due. */
LAXITY_INLINE struct laxity_entry *said_of(struct laxity_job *job)
{
	u32 number = number_of(bpf_get_current_task_btf());
	struct laxity_job *waker = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_entry *entry;

	if (!waker || waker->page != job->page)
		return 0;
	entry = entry_of(waker);
	return entry && entry->is_non_preemptive == SAYS_OF + job->entry ? entry : 0;
}

/*
 * The thread of task `number`, which waited for an event, wakes: its job is to be released. Returns whether it is due to be now.
 */
LAXITY_GLOBAL int arrive(u32 number)
{
	struct laxity_job *job = job_of(number);
	struct laxity_entry *said, *entry;
	u64 now = bpf_ktime_get_ns(), next = now;

	if (!job)
		return 0;
	said = said_of(job);
	entry = said ? entry_of(job) : 0;
	if (entry) {
		next = said->next;
		/* As if its own thread had said so: due_of reads it there. */
		entry->next = next;
		entry->due = said->due;
	}
	job->release = next > job->release ? next : job->release;
	job->waits = WAITS_RELEASE;
	return job->release <= now;
}

#endif
