/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that are not where a job is linked: those of no task, and those of tasks that Linux lets go on elsewhere only, or that
 * wake long before their next release. Part of scheduler.bpf.c.
 *
 * Policy: they wait in one queue. A thread that wakes early, for a signal perhaps, does so until it sleeps again or yields. So it can
 * handle that signal, which may end it, however far away its release is; a thread that is kept for half a minute has Linux's watchdog
 * end the scheduler. If its release comes while it waits in the queue, the CPU that gets its job takes from there.
 */
#ifndef LAXITY_STRAYS_H
#define LAXITY_STRAYS_H

#include "alarm.h"
#include "others.h"
#include "shares.h"

#define SLICE_ENDLESS (~0ull)
/* Of a thread that must go on where its job is not linked. */
#define SLICE_STRAY 1000000ull
/* A thread that wakes so long before its next release, or less, is kept until then: more than clocks and wake-ups are late. */
#define EARLY 10000000ull

/* What laxity_job.strays says of a thread that woke early; 1: of one that Linux lets go on elsewhere only. */
#define STRAYS_EARLY 2

/* Whether the thread, which is enqueued with `flags`, woke for something else than its next release, and is not done with that. */
LAXITY_INLINE int is_early(struct laxity_job *job, s32 cpu, u64 flags)
{
	if (!(flags & ENQUEUED_AWAKE) && (job->strays != STRAYS_EARLY || share_of(cpu)->yields))
		return 0;
	return job->waits == WAITS_RELEASE && job->release > bpf_ktime_get_ns() + EARLY;
}

/* Has a CPU take `task` from the queue of other threads, if one may. */
LAXITY_INLINE void offer(struct task_struct *task)
{
	s32 cpu = scx_bpf_pick_idle_cpu(task->cpus_ptr, 0);

	/* Another one may be idle that is not throttled. */
	if (cpu >= 0 && is_throttled(cpu, bpf_ktime_get_ns()))
		cpu = scx_bpf_pick_idle_cpu(task->cpus_ptr, 0);
	scx_bpf_kick_cpu(cpu >= 0 ? cpu : scx_bpf_task_cpu(task), KICK_IDLE);
	if (!setting.others_period)
		return;
	/* Exchanged, so that this is seen before the other is read. */
	__sync_lock_test_and_set(&other_came, bpf_ktime_get_ns());
	if (!others_are_known)
		await_others();
}

LAXITY_INLINE void enqueue_other(struct task_struct *task, u64 flags)
{
	if (displace(scx_bpf_task_cpu(task), task, flags))
		return;
	queue_other(task, SLICE_OTHERS, flags);
	offer(task);
}

/* A thread that woke early waits like them, and is charged as if it used its slice up. */
LAXITY_INLINE void enqueue_early(struct task_struct *task, u64 flags)
{
	task->scx.dsq_vtime += SLICE_STRAY;
	queue_other(task, SLICE_STRAY, flags);
	offer(task);
}

/* Sends the thread of a job that is linked to `cpu` there, or where Linux insists on it. */
LAXITY_INLINE void send(s32 cpu, struct task_struct *task, struct laxity_job *job)
{
	s32 at = scx_bpf_task_cpu(task);

	if (task->migration_disabled && at != cpu) {
		job->strays = 1;
		insert(task, DSQ_LOCAL_ON | at, SLICE_STRAY, 0);
		scx_bpf_kick_cpu(at, KICK_PREEMPT);
	} else if (!bpf_cpumask_test_cpu(cpu, task->cpus_ptr)) {
		job->strays = 1;
		queue_other(task, SLICE_STRAY, 0);
	} else {
		insert(task, DSQ_LOCAL, SLICE_ENDLESS, 0);
	}
}

#endif
