/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core under a lock. Each event, and each round of a decision, is one locked section in a function of its own, which the
 * verifier proves once and not at each call.
 *
 * Decisions are taken round by round, and other CPUs' events may come in between. That heals: each round leaves a
 * proper mapping, in which at most later rounds are missing, and the CPU whose event it was goes on until none is.
 */
#ifndef LAXITY_EVENTS_H
#define LAXITY_EVENTS_H

#include "dispatch.h"
#include "kernel.h"
#include "policy.h"

#define LAXITY_CLUSTERS 64

struct laxity_cluster {
	struct bpf_spin_lock lock;
	struct laxity_core core;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_CLUSTERS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct laxity_cluster);
} clusters SEC(".maps");

enum laxity_event {
	LAXITY_RELEASE,
	LAXITY_COMPLETE,
	LAXITY_SUSPEND,
	LAXITY_RESUME,
	LAXITY_SWITCH,
	LAXITY_ENTER,
	LAXITY_EXIT,
	LAXITY_TICK,
};

static inline __attribute__((always_inline)) struct laxity_cluster *laxity_cluster_of(u32 number)
{
	return bpf_map_lookup_elem(&clusters, &number);
}

/* One event of `task` on `cpu`; 0 or more, or an enum laxity_error. `number`: the priority, or which quantum. */
LAXITY_GLOBAL int laxity_tell(u32 cluster, u32 event, u32 cpu, u32 task, u64 number)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int outcome = LAXITY_NO_SUCH;

	if (!it)
		return LAXITY_NO_SUCH;
	bpf_spin_lock(&it->lock);
	if (event == LAXITY_RELEASE)
		outcome = laxity_release(&it->core, task, number);
	else if (event == LAXITY_COMPLETE || event == LAXITY_SUSPEND)
		outcome = laxity_leave(&it->core, cpu, task,
				       event == LAXITY_COMPLETE ? LAXITY_INACTIVE : LAXITY_SUSPENDED);
	else if (event == LAXITY_RESUME)
		outcome = laxity_resume(&it->core, task);
	else if (event == LAXITY_SWITCH)
		outcome = laxity_switch(&it->core, cpu, task);
	else if (event == LAXITY_ENTER)
		outcome = laxity_enter(&it->core, task);
	else if (event == LAXITY_EXIT)
		outcome = laxity_exit(&it->core, task);
	else if (event == LAXITY_TICK)
		outcome = laxity_tick(&it->core, cpu, number);
	bpf_spin_unlock(&it->lock);
	return outcome;
}

/* The effective priority of `task` changes. */
LAXITY_GLOBAL int laxity_tell_priority(u32 cluster, u32 task, u64 major, u32 tie)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int outcome;

	if (!it)
		return LAXITY_NO_SUCH;
	bpf_spin_lock(&it->lock);
	outcome = laxity_prioritize(&it->core, task, major, tie);
	bpf_spin_unlock(&it->lock);
	return outcome;
}

/* An interrupt thread has work. */
LAXITY_GLOBAL int laxity_tell_work(u32 cluster, u32 thread, u32 owner, u64 major, u32 tie)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int outcome;

	if (!it)
		return LAXITY_NO_SUCH;
	bpf_spin_lock(&it->lock);
	outcome = laxity_wake(&it->core, thread, owner, major, tie);
	bpf_spin_unlock(&it->lock);
	return outcome;
}

/* One round of a decision; whether there may be another. */
LAXITY_GLOBAL int laxity_round(u32 cluster)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int outcome;

	if (!it)
		return 0;
	bpf_spin_lock(&it->lock);
	outcome = laxity_decide_round(&it->core);
	bpf_spin_unlock(&it->lock);
	return outcome;
}

/* The CPUs, a bit each, that must be interrupted because of decisions since the last call. */
LAXITY_GLOBAL u64 laxity_to_kick(u32 cluster)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	u64 kicks;

	if (!it)
		return 0;
	bpf_spin_lock(&it->lock);
	kicks = laxity_kicks(&it->core, laxity_announce(&it->core));
	bpf_spin_unlock(&it->lock);
	return kicks;
}

/* Decides to the end, and says which CPUs must be interrupted. */
LAXITY_GLOBAL u64 laxity_settle(u32 cluster)
{
	u32 round;

	for (round = 0; round <= LAXITY_CPUS; round++)
		if (laxity_round(cluster) <= 0)
			break;
	return laxity_to_kick(cluster);
}

/* The task whose process `cpu` is to run; LAXITY_NONE. */
LAXITY_GLOBAL u32 laxity_to_run(u32 cluster, u32 cpu)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	u32 next;

	if (!it)
		return LAXITY_NONE;
	bpf_spin_lock(&it->lock);
	next = laxity_next(&it->core, cpu);
	bpf_spin_unlock(&it->lock);
	return next;
}

/*
 * Takes the process of `task` to `cpu`, if it is still the one to run there: from then on its job is linked nowhere else.
 * Were that noted only once the process runs, its link could move while it is on its way.
 */
LAXITY_GLOBAL int laxity_claim(u32 cluster, u32 cpu, u32 task)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int is_ours = 0;

	if (!it)
		return 0;
	bpf_spin_lock(&it->lock);
	if (task < LAXITY_TASKS && laxity_next(&it->core, cpu) == task)
		is_ours = laxity_switch(&it->core, cpu, task) == 0;
	bpf_spin_unlock(&it->lock);
	return is_ours;
}

/* The process of `task` has no CPU, however it lost it. Returns the CPU that its job is linked to; LAXITY_NONE. */
LAXITY_GLOBAL u32 laxity_put(u32 cluster, u32 task)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	u32 linked = LAXITY_NONE;
	struct laxity_task *job;

	if (!it)
		return LAXITY_NONE;
	bpf_spin_lock(&it->lock);
	job = laxity_task_at(&it->core, task);
	if (job->on != LAXITY_NONE)
		laxity_switch(&it->core, job->on, LAXITY_NONE);
	if (job->state == LAXITY_LINKED)
		linked = job->linked_to;
	bpf_spin_unlock(&it->lock);
	return linked;
}

#endif
