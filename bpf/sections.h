/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Non-preemptive sections. Part of scheduler.bpf.c.
 */
#ifndef LAXITY_SECTIONS_H
#define LAXITY_SECTIONS_H

#include "budgets.h"
#include "tasks.h"

/* So long a non-preemptive section keeps a CPU that another job should have. */
#define SECTION_MAX 10000000ull

/* Its thread keeps no CPU that another job should have, from now on. */
LAXITY_INLINE void end_section(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job)
{
	struct laxity_entry *entry = entry_of(job);

	if (!job->kept_since)
		return;
	job->kept_since = 0;
	if (entry)
		entry->is_awaited = 0;
	happen(note, HAPPENS_EXIT, cpu, number, job);
}

/*
 * The thread on `cpu`, which may go on, keeps it or not: whether it is in a non-preemptive section shows in its page, and
 * matters only where another job is linked to that CPU, or other threads are owed time there (`owes`). So a section in which nothing happens costs two stores and a load.
 */
LAXITY_INLINE void attend(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job, u64 owes)
{
	struct laxity_entry *entry = entry_of(job);
	u32 local = local_of(job->cluster, cpu);
	int is_inside = entry && entry->is_non_preemptive && job->waits == WAITS_NOT;

	if (job->kept_since) {
		if (!is_inside || bpf_ktime_get_ns() - job->kept_since >= SECTION_MAX)
			end_section(note, cpu, number, job);
	} else if (is_inside && local != LAXITY_NONE && (owes || laxity_to_run(job->cluster, local) != number)) {
		if (happen(note, HAPPENS_ENTER, cpu, number, job) < 0)
			return;
		job->kept_since = note->at;
		entry->is_awaited = 1;
	}
}

#endif
