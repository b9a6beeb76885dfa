/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the loader asks of the scheduler, as programs that it calls (BPF_PROG_TYPE_SYSCALL). Part of scheduler.bpf.c, after
 * what they call.
 */
#ifndef LAXITY_REQUESTS_H
#define LAXITY_REQUESTS_H

#include "alarm.h"
#include "budgets.h"
#include "tasks.h"

/* Before the scheduler is attached: cluster `cluster` has that many CPUs. */
struct laxity_setup {
	u32 cluster;
	u32 cpus;
	u32 rule;
	u32 invocation;
};

SEC("syscall") int laxity_setup_cluster(struct laxity_setup *setup)
{
	struct laxity_cluster *it = laxity_cluster_of(setup->cluster);

	if (it)
		it->core.bracket = setting.first_of[setup->cluster & (LAXITY_CLUSTERS - 1)];
	/* Nothing else runs yet. */
	return it ? laxity_init(&it->core, LAXITY_TASKS, setup->cpus, setup->rule, setup->invocation) : LAXITY_NO_SUCH;
}

struct laxity_begin {
	s32 pid;
	u32 number;
	u32 page;
	u32 entry;
	u32 cluster;
	/* Whether the thread says when its jobs are released; and what its entry says of completions from the beginning on. */
	u16 is_told;
	u16 is_complete;
	u64 period;
	u64 deadline;
	/* Of the first job; and when that is due if the thread says so, 0: as all are. */
	u64 release;
	u64 due;
	u64 level;
	/* Of each job; 0: none. */
	u64 budget;
};

/* Thread `pid` is task `number` from now on; it ends "job 0" to wait for its first job. */
SEC("syscall") int laxity_begin(struct laxity_begin *begin)
{
	u32 number = begin->number & (LAXITY_TASKS - 1), *stored, *place;
	u32 at = begin->page * LAXITY_ENTRIES + begin->entry;
	struct laxity_job *job = job_of(number);
	struct laxity_cluster *it = laxity_cluster_of(begin->cluster);
	struct laxity_page *page = page_of(begin->page);
	u32 in_page = begin->entry & (LAXITY_ENTRIES - 1);
	struct task_struct *task = bpf_task_from_pid(begin->pid);
	struct laxity_note note = {};

	if (!task)
		return -1;
	stored = bpf_task_storage_get(&numbers, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	place = bpf_map_lookup_elem(&places, &at);
	if (job && it && page && in_page < LAXITY_ENTRIES - 1 && stored && place) {
		/* What the last task that had it said, and was told. */
		page->entry[in_page] = (struct laxity_entry){
			/* A program says nothing later: each wake-up is an event. */
			.next = begin->is_complete ? 0 : begin->release,
			.due = begin->due,
			.is_complete = begin->is_complete,
		};
		laxity_set_rank(&it->core, number, begin->level, number);
		job->period = begin->period;
		job->deadline = begin->deadline;
		job->release = begin->release;
		job->released = job->completed = job->late = 0;
		job->tardiness_max = job->response_max = 0;
		job->page = begin->page;
		job->entry = begin->entry;
		job->cluster = begin->cluster;
		job->strays = 0;
		job->kept_since = 0;
		job->server = (struct laxity_server){ .budget = begin->budget };
		job->since = job->idle_since = 0;
		job->due = 0;
		job->is_told = begin->is_told;
		job->throttled = 0;
		job->level = begin->level;
		job->waits_for = job->owner = 0;
		job->anonymous = 0;
		*place = number + 1;
		job->pid = begin->pid;
		if (number >= state.tasks)
			state.tasks = number + 1;
		job->waits = WAITS_RELEASE;
		/* As it does while its process asks for this. Only then does it count: so that no wake-up is missed. */
		it->sleeps[number] = 1;
		*stored = number + 1;
		if (!task->__state) {
			note.extra = 1;
			happen(&note, HAPPENS_RESUME, scx_bpf_task_cpu(task), number, job);
		}
		/*
		 * If it is on a CPU at this moment, that is as another thread, and no event would say that its first job runs
		 * there. The CPU looks again: the thread goes on as the task, or waits for its link. It learns of its job only from
		 * the answer, which comes after this.
		 */
		scx_bpf_kick_cpu(scx_bpf_task_cpu(task), KICK_PREEMPT);
	}
	bpf_task_release(task);
	if (!job || !it || !page || !stored || !place)
		return -1;
	await(number);
	return 0;
}

struct laxity_link_request {
	u32 cluster;
	u32 number;
};

/* The cluster's CPU that the job of a task is linked to; LAXITY_NONE. */
SEC("syscall") int laxity_link_of(struct laxity_link_request *request)
{
	struct laxity_cluster *it = laxity_cluster_of(request->cluster);
	struct laxity_task *job;
	int linked;

	if (!it)
		return LAXITY_NONE;
	bpf_spin_lock(&it->lock);
	job = laxity_task_at(&it->core, request->number);
	linked = job->state == LAXITY_LINKED ? job->linked_to : LAXITY_NONE;
	bpf_spin_unlock(&it->lock);
	return linked;
}

#endif
