/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to tasks and CPUs of a scheduler: each event, the decision that follows from it, and its place in the order of
 * all events of the cluster, in one locked section.
 *
 * Event-driven, one round of a decision is enough after one event: before it the most urgent jobs are linked, and an event
 * makes one job ready, or one CPU free, or changes one priority. So the links are right whenever the lock is free.
 * Quantum-driven, an event links nothing, and where a quantum begins all rounds are needed.
 *
 * With a fine or hierarchical queue an arrival has its job in the queue before it waits for the lock: ready.h.
 */
#ifndef LAXITY_HAPPEN_H
#define LAXITY_HAPPEN_H

#include "dispatch.h"
#include "hold.h"
#include "kernel.h"
#include "policy.h"

#define LAXITY_CLUSTERS 64
/* One event changes the links of at most three CPUs. */
#define LAXITY_NOTED 4

/* What user space reads as `Happening`, with the same numbers. */
enum laxity_happening {
	/*
	 * A job is released; `number` is the deadline by which it ranks under EDF, `extra` its release. If its thread sleeps, that
	 * waits for the wake-up.
	 */
	HAPPENS_RELEASE,
	/* By a sleep of its thread, if `extra` is 1. So is SUSPEND; and RESUME, by a wake-up. */
	HAPPENS_COMPLETE,
	HAPPENS_SUSPEND,
	HAPPENS_RESUME,
	/* Its thread has the CPU, whatever was decided. */
	HAPPENS_RUN,
	/* Its thread lost the CPU and could go on. */
	HAPPENS_STOP,
	/* The thread is handed to the scheduler, which may give it to a CPU. */
	HAPPENS_PUT,
	/* Linux takes the thread back. */
	HAPPENS_TAKE,
	/* The scheduler gives the thread to a CPU, if its job is linked there. */
	HAPPENS_CLAIM,
	/* The task is no more. */
	HAPPENS_FORGET,
	/* Its effective priority is `number`, with ties by `extra`, and that of interrupt threads that work for it. */
	HAPPENS_PRIORITY,
	/*
	 * An interrupt thread has work, for the task whose number is `cpu`, at the effective priority of that task's job, which
	 * `number` and `extra` say afterwards; LAXITY_NONE: for none, and they say it before.
	 */
	HAPPENS_WORK,
	/* It enters a non-preemptive section, and leaves it. */
	HAPPENS_ENTER,
	HAPPENS_EXIT,
	/* Quantum `number` begins on `cpu`: see laxity_begin_quantum. */
	HAPPENS_TICK,
};

/* A CPU, and the task that is linked to it from now on. */
struct laxity_noted {
	u16 cpu;
	u16 task;
};

/* An event, and what follows from it. */
struct laxity_note {
	/* Its place in the order of all events of the cluster. */
	u64 sequence;
	/* On the monotonic clock, before the lock was taken. 0: the event is never written down. */
	u64 at;
	u64 number;
	u64 extra;
	u64 kicks;
	u16 kind;
	u16 cluster;
	/* Of the cluster's CPUs. */
	u16 cpu;
	u16 task;
	/* Of the task's job, after the event and its decision. */
	u16 state;
	u16 linked_to;
	/* Whether the event changed what a trace shows. */
	u16 is_news;
	/* How many CPUs have other links. */
	u16 links;
	struct laxity_noted link[LAXITY_NOTED];
};

/* The beginning of a quantum may change the links of all CPUs: the rest of them follows the note. */
struct laxity_quantum_note {
	struct laxity_note note;
	struct laxity_noted more[LAXITY_CPUS - LAXITY_NOTED];
};

struct laxity_cluster {
	struct bpf_spin_lock lock;
	struct laxity_core core;
	u64 sequence;
	/* Whether the scheduler has the thread, to give to a CPU. */
	u16 custody[LAXITY_TASKS];
	/* Whether the thread executes a job, as far as was written down: unlike `on`, it is not on its way. */
	u16 runs[LAXITY_TASKS];
	/*
	 * Whether the thread sleeps, and whether its job waits for it: one that slept would have its CPU idle for it, and what it
	 * waits for may need that CPU. `due` and `since` are the deadline and the release of that job.
	 */
	u16 sleeps[LAXITY_TASKS];
	u16 is_late[LAXITY_TASKS];
	u64 due[LAXITY_TASKS];
	u64 since[LAXITY_TASKS];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_CLUSTERS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct laxity_cluster);
} clusters SEC(".maps");

LAXITY_INLINE struct laxity_cluster *laxity_cluster_of(u32 number)
{
	return bpf_map_lookup_elem(&clusters, &number);
}

/* The thread of `task` has no CPU. Returns the one that it had; LAXITY_NONE. */
LAXITY_FN u32 laxity_lift(struct laxity_core *core, u32 task)
{
	u32 on = laxity_task_at(core, task)->on;

	if (on != LAXITY_NONE)
		laxity_switch(core, on, LAXITY_NONE);
	return on;
}

/* The job of `task` is not to run any more, wherever its thread is. `to`: INACTIVE or SUSPENDED. */
LAXITY_FN int laxity_withdraw(struct laxity_core *core, u32 cpu, u32 task, u32 to)
{
	struct laxity_task *job = laxity_task_at(core, task);

	laxity_lift(core, task);
	/* Its thread may have run where it was not linked, while it was on its way. */
	if (job->state == LAXITY_LINKED)
		cpu = job->linked_to;
	else if (cpu >= core->cpus)
		cpu = 0;
	return laxity_leave(core, cpu, task, to);
}

/*
 * Notes the CPUs whose links changed, in `link`, which has room for so many, and which of them must be interrupted. The sums of
 * a round go through memory, so that rounds are alike to the verifier. Mostly no link changed.
 */
LAXITY_FN int laxity_note_links(struct laxity_core *core, struct laxity_note *note, struct laxity_noted *link, u32 room)
{
	volatile u64 *kicks = &note->kicks;
	volatile u16 *links = &note->links;
	u64 touched = core->touched;
	u32 round = 0;

	while (LAXITY_GOES_ON(round, LAXITY_CPUS) && touched) {
		u32 at = *links & (room - 1), cpu = laxity_first_of(touched);
		struct laxity_cpu *slot = laxity_cpu_at(core, cpu);

		touched &= touched - 1;
		LAXITY_FORGET(core, touched);
		if (slot->announced == slot->linked)
			continue;
		slot->announced = slot->linked;
		link[at].cpu = cpu;
		link[at].task = slot->linked;
		*links = at + 1;
		if (laxity_next(core, cpu) != slot->process)
			*kicks |= 1ull << cpu;
	}
	core->touched = 0;
	return 0;
}

/*
 * Whether links may change by an event of this kind: not by what happens to processes alone, as a section does.
 */
LAXITY_FN int laxity_may_change_links(u32 kind)
{
	return kind < HAPPENS_RUN || kind == HAPPENS_FORGET || kind == HAPPENS_PRIORITY || kind == HAPPENS_WORK;
}

/* Whether an event of this kind is never written down: its time is of no account. */
LAXITY_FN int laxity_is_silent(u32 kind)
{
	return kind == HAPPENS_PUT || kind == HAPPENS_TAKE || kind == HAPPENS_CLAIM;
}

/* The event itself, under the lock. */
LAXITY_FN int laxity_apply(struct laxity_cluster *it, struct laxity_note *note)
{
	struct laxity_core *core = &it->core;
	u32 task = note->task & (LAXITY_TASKS - 1), cpu = note->cpu, kind = note->kind;
	struct laxity_task *job = laxity_task_at(core, task);
	u32 state = job->state;

	note->is_news = 1;
	switch (kind) {
	case HAPPENS_RELEASE:
		if (!it->sleeps[task])
			return laxity_release(core, task, note->number);
		it->is_late[task] = 1;
		it->due[task] = note->number;
		it->since[task] = note->extra;
		note->is_news = 0;
		return 0;
	case HAPPENS_COMPLETE:
	case HAPPENS_SUSPEND:
		it->sleeps[task] |= note->extra;
		if (state != LAXITY_INACTIVE && state != LAXITY_SUSPENDED)
			it->runs[task] = 0;
		return laxity_withdraw(core, cpu, task, kind == HAPPENS_SUSPEND ? LAXITY_SUSPENDED : LAXITY_INACTIVE);
	case HAPPENS_RESUME:
		if (note->extra)
			it->sleeps[task] = 0;
		if (!note->extra || !it->is_late[task])
			return laxity_resume(core, task);
		it->is_late[task] = 0;
		note->kind = HAPPENS_RELEASE;
		note->number = it->due[task];
		note->extra = it->since[task];
		return laxity_release(core, task, note->number);
	case HAPPENS_RUN:
		/* A CPU outside the cluster, where Linux insists on it, is none of ours. */
		note->is_news = !it->runs[task] && cpu < core->cpus && state != LAXITY_INACTIVE;
		if (note->is_news)
			it->runs[task] = 1;
		if (job->on != cpu)
			laxity_lift(core, task);
		it->custody[task] = 0;
		return cpu < core->cpus ? laxity_switch(core, cpu, task) : 0;
	case HAPPENS_STOP:
		note->is_news = it->runs[task];
		it->runs[task] = 0;
		if (job->on == cpu)
			laxity_lift(core, task);
		return 0;
	case HAPPENS_PUT:
		/* It never ran where it was sent, or lost its CPU to a class above, non-preemptive or not. */
		laxity_lift(core, task);
		job->is_non_preemptive = 0;
		note->is_news = 0;
		it->custody[task] = 1;
		return 0;
	case HAPPENS_TAKE:
		laxity_lift(core, task);
		note->is_news = 0;
		it->custody[task] = 0;
		return 0;
	case HAPPENS_CLAIM:
		note->is_news = 0;
		if (!it->custody[task] || laxity_next(core, cpu) != task || laxity_switch(core, cpu, task))
			return 0;
		it->custody[task] = 0;
		return 1;
	case HAPPENS_FORGET:
		laxity_lift(core, task);
		it->custody[task] = it->runs[task] = 0;
		it->sleeps[task] = it->is_late[task] = 0;
		if (state == LAXITY_INACTIVE)
			return 0;
		/* As if it had come back first, and been held back: a suspended job has no CPU that it could leave. */
		if (state == LAXITY_SUSPENDED)
			job->state = LAXITY_HELD;
		return laxity_withdraw(core, cpu, task, LAXITY_INACTIVE);
	case HAPPENS_PRIORITY:
		return laxity_lead(core, task, note->number, note->extra);
	case HAPPENS_WORK:
		if (cpu != LAXITY_NONE) {
			struct laxity_task *owner = laxity_task_at(core, cpu);

			if (owner->state == LAXITY_INACTIVE)
				return LAXITY_NOT_PENDING;
			note->number = owner->major;
			note->extra = owner->tie;
		}
		return laxity_wake(core, task, cpu, note->number, note->extra);
	case HAPPENS_ENTER:
		return laxity_enter(core, task);
	case HAPPENS_EXIT:
		return laxity_exit(core, task);
	}
	return LAXITY_NO_SUCH;
}

/*
 * Before the lock: the job that arrives by `note`, if one does, is put into the queue, with the key that it should have; its leaf
 * then, or 0. One whose thread sleeps waits for that.
 */
LAXITY_FN u64 laxity_foresee(struct laxity_cluster *it, struct laxity_note *note)
{
	struct laxity_core *core = &it->core;
	u32 task = note->task & (LAXITY_TASKS - 1), cpu = note->cpu, kind = note->kind, from = LAXITY_OUT_INACTIVE, tie;
	struct laxity_task *job = laxity_task_at(core, task);
	u64 major = note->number;

	if (LAXITY_READY(core) == LAXITY_COARSE)
		return 0;
	if (kind == HAPPENS_RELEASE && !it->sleeps[task]) {
		major = core->rule == LAXITY_BY_TASK ? job->level : major;
		tie = job->position;
	} else if (kind == HAPPENS_RESUME) {
		from = LAXITY_OUT_SUSPENDED;
		major = job->major;
		tie = job->tie;
	} else if (kind == HAPPENS_WORK && cpu == LAXITY_NONE) {
		tie = note->extra;
	} else {
		return 0;
	}
	return laxity_arrive_early(core, task, from, cpu, major, tie);
}

/*
 * Has `note` happen. Returns what the core does: 0 or more, or an enum laxity_error, which leaves everything as it was. The
 * caller kicks the CPUs in note->kicks.
 */
LAXITY_GLOBAL int laxity_happen(struct laxity_note *note)
{
	struct laxity_cluster *it;
	struct laxity_task *job;
	u64 foreseen;
	int outcome;

	if (!note)
		return LAXITY_NO_SUCH;
	it = laxity_cluster_of(note->cluster);
	note->links = 0;
	note->kicks = 0;
	note->at = laxity_is_silent(note->kind) ? 0 : bpf_ktime_get_ns();
	if (!it)
		return LAXITY_NO_SUCH;
	laxity_ask();
	foreseen = laxity_foresee(it, note);
	if (foreseen)
		laxity_gave_back(LOCK_NOT);
	laxity_ask();
	bpf_spin_lock(&it->lock);
	if (foreseen)
		laxity_expect(&it->core, foreseen);
	outcome = laxity_apply(it, note);
	if (foreseen)
		laxity_end_early(&it->core, note->task);
	if (outcome >= 0 && laxity_may_change_links(note->kind)) {
		laxity_decide_round(&it->core);
		laxity_note_links(&it->core, note, note->link, LAXITY_NOTED);
	}
	job = laxity_task_at(&it->core, note->task);
	note->state = job->state;
	note->linked_to = job->state == LAXITY_LINKED ? job->linked_to : LAXITY_NONE;
	if (outcome < 0)
		note->is_news = 0;
	/* Only what is written down is counted, so that a gap is a loss. */
	if (note->is_news || note->links)
		note->sequence = it->sequence++;
	bpf_spin_unlock(&it->lock);
	laxity_gave_back(LOCK_LINKS);
	return outcome;
}

/*
 * Quantum note->number begins on note->cpu: all rounds of the decision. Returns whether jobs are left that wait for a link; or
 * an enum laxity_error. The caller kicks as after laxity_happen.
 */
LAXITY_GLOBAL int laxity_begin_quantum(struct laxity_quantum_note *tick)
{
	struct laxity_note *note = (struct laxity_note *)tick;
	/* Not note->link, which is shorter. */
	struct laxity_noted *link = (void *)((char *)tick + __builtin_offsetof(struct laxity_note, link));
	struct laxity_cluster *it;
	int outcome;

	if (!tick)
		return LAXITY_NO_SUCH;
	it = laxity_cluster_of(note->cluster);
	note->links = 0;
	note->kicks = 0;
	note->at = bpf_ktime_get_ns();
	if (!it)
		return LAXITY_NO_SUCH;
	laxity_ask();
	bpf_spin_lock(&it->lock);
	outcome = laxity_tick(&it->core, note->cpu, note->number);
	note->is_news = outcome >= 0;
	if (outcome >= 0) {
		laxity_decide(&it->core);
		laxity_note_links(&it->core, note, link, LAXITY_CPUS);
		note->sequence = it->sequence++;
		outcome = laxity_is_one_ready(&it->core);
	}
	bpf_spin_unlock(&it->lock);
	laxity_gave_back(LOCK_LINKS);
	return outcome;
}

/* Whether a job waits for a link. */
LAXITY_GLOBAL int laxity_is_awaited(u32 cluster)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	int is_awaited;

	if (!it)
		return 0;
	laxity_ask();
	bpf_spin_lock(&it->lock);
	is_awaited = laxity_is_one_ready(&it->core);
	bpf_spin_unlock(&it->lock);
	laxity_gave_back(LOCK_LINKS);
	return is_awaited;
}

/*
 * Whether it is an event that the thread of `task`, which Linux is about to queue, can run: its job waits for that. No lock, as only
 * that thread ends it.
 */
LAXITY_INLINE int laxity_is_resumable(u32 cluster, u32 task)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);

	return it && (it->sleeps[task & (LAXITY_TASKS - 1)] || laxity_task_at(&it->core, task)->state == LAXITY_SUSPENDED);
}

/* The task whose process `cpu` is to run; LAXITY_NONE. */
LAXITY_GLOBAL u32 laxity_to_run(u32 cluster, u32 cpu)
{
	struct laxity_cluster *it = laxity_cluster_of(cluster);
	u32 next;

	if (!it)
		return LAXITY_NONE;
	laxity_ask();
	bpf_spin_lock(&it->lock);
	next = laxity_next(&it->core, cpu);
	bpf_spin_unlock(&it->lock);
	laxity_gave_back(LOCK_LINKS);
	return next;
}

#endif
