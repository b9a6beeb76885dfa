/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads of the kernel, or of a process, that handle interrupts (klmirqd: paper 000, section III). Part of scheduler.bpf.c.
 *
 * Policy: such a thread has work from when it wakes until it sleeps. It works for the most urgent pending job of its cluster whose
 * task says so in its page, at that job's effective priority, inheritance included; the two are one entity of the core (entities.h),
 * in which the thread goes first. Where no task says so it is a hard constant bandwidth server (server.h) with that one's deadline,
 * or with its own level under fixed priorities.
 * Guarantee: it never executes beside its owner, where Linux lets it run on the CPUs of its cluster.
 * Not handled: owners in other clusters; a handler that sleeps, whose work ends there and begins anew when it wakes.
 */
#ifndef LAXITY_INTERRUPTS_H
#define LAXITY_INTERRUPTS_H

#include "budgets.h"
#include "inherit.h"
#include "tasks.h"

struct search {
	u64 urgency;
	u32 of;
	u32 owner;
	u32 thread;
	u32 cluster;
};

/* Whether a task says that the interrupt thread `named` works for it. */
LAXITY_INLINE int is_served(struct laxity_entry *entry, u32 named)
{
	volatile u32 *by = entry->served_by;
	u32 at, is = 0;

#pragma unroll
	for (at = 0; at < LAXITY_SERVED; at++)
		is |= by[at] == named;
	return is;
}

/* Task `number` may be the owner. Between two jobs it has no priority that the thread could have. */
static s64 look_at_owner(u32 number, struct search *search)
{
	struct laxity_job *job = job_of(number);
	struct laxity_entry *entry;

	if (!job || !job->pid || job->anonymous || job->cluster != search->cluster || job->waits == WAITS_RELEASE ||
	    job->waits == WAITS_EVENT)
		return 0;
	entry = entry_of(job);
	if (!entry || !is_served(entry, search->thread + 1))
		return 0;
	if (search->owner == LAXITY_NONE || job->urgency < search->urgency ||
	    (job->urgency == search->urgency && job->of < search->of)) {
		search->owner = number;
		search->urgency = job->urgency;
		search->of = job->of;
	}
	return 0;
}

/* The interrupt thread `number` works for `owner`, LAXITY_NONE: for none, if the core agrees. */
LAXITY_INLINE int work_for(struct laxity_note *note, u32 owner, u32 number, struct laxity_job *job)
{
	job->owner = owner == LAXITY_NONE ? 0 : owner + 1;
	/* Work for a task is not the server's. */
	job->server.budget = owner == LAXITY_NONE ? job->anonymous : 0;
	if (owner == LAXITY_NONE) {
		laxity_server_begin(&job->server, job->period, bpf_ktime_get_ns());
		note->number = job->urgency = setting.by_task ? job->level : rank_of(job);
		note->extra = job->of = number;
	}
	return happen(note, HAPPENS_WORK, owner, number, job);
}

/* The interrupt thread `number` can run: it has work, if it has not had it before. */
LAXITY_INLINE void begin_work(struct laxity_note *note, u32 number, struct laxity_job *job)
{
	struct search search = { .owner = LAXITY_NONE, .thread = number, .cluster = job->cluster };
	int outcome = LAXITY_NOT_PENDING;

	if (job->released != job->completed)
		return;
	bpf_loop(state.tasks, look_at_owner, &search, 0);
	if (search.owner != LAXITY_NONE)
		outcome = work_for(note, search.owner, number, job);
	/* That one's job has ended meanwhile, or it did not begin yet. */
	if (outcome == LAXITY_NOT_PENDING)
		outcome = work_for(note, LAXITY_NONE, number, job);
	if (outcome < 0) {
		FAIL("an interrupt thread was refused", job->pid);
		return;
	}
	job->released++;
	job->owned += job->owner != 0;
	job->release = note->at;
}

/* It sleeps: its work is done. */
LAXITY_INLINE void end_work(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job)
{
	if (job->released == job->completed)
		return;
	note->extra = 0;
	if (happen(note, HAPPENS_COMPLETE, cpu, number, job) < 0) {
		FAIL("the end of an interrupt was refused", job->pid);
		return;
	}
	job->completed++;
	/* Its owner may be ready now. */
	if (setting.quantum)
		await_quantum(job->cluster, note->at);
	if (note->at - job->release > job->response_max)
		job->response_max = note->at - job->release;
}

/* What the loader asks. */
struct laxity_handle {
	s32 pid;
	u32 number;
	u32 cluster;
	u32 unused;
	/* Of its server, while it works for no task. */
	u64 budget;
	u64 period;
	u64 level;
};

/* Thread `pid`, which sleeps or is of another class, is interrupt thread `number` from now on. */
SEC("syscall") int laxity_handle(struct laxity_handle *handle)
{
	u32 number = handle->number & (LAXITY_TASKS - 1), *stored;
	struct laxity_cluster *it = laxity_cluster_of(handle->cluster);
	struct task_struct *task = bpf_task_from_pid(handle->pid);
	struct laxity_job *job = job_of(number);

	if (!task)
		return -1;
	stored = bpf_task_storage_get(&numbers, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (job && it && stored) {
		laxity_set_rank(&it->core, number, handle->level, number);
		/* None of a process. */
		*job = (struct laxity_job){
			.period = handle->period,
			.deadline = handle->period,
			.pid = handle->pid,
			.page = LAXITY_NONE,
			.cluster = handle->cluster,
			.level = handle->level,
			.anonymous = handle->budget,
		};
		if (number >= state.tasks)
			state.tasks = number + 1;
		*stored = number + 1;
	}
	bpf_task_release(task);
	return job && it && stored ? 0 : -1;
}

#endif
