/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tasks of the scheduler, what their processes share with it, and what it writes down. User space has the same
 * structures in crates/laxity-scx.
 */
#ifndef LAXITY_TASKS_H
#define LAXITY_TASKS_H

#include "happen.h"
#include "sched_ext.h"
#include "server.h"

/* Processes that have tasks, and tasks of each. */
#define LAXITY_PAGES 64
#define LAXITY_ENTRIES 32
/* Interrupt threads that a task can have work for it at the same time. */
#define LAXITY_SERVED 8
#define LAXITY_PAGE 4096
#define LAXITY_DUMP 32768
/* In place of the number of a CPU that is none of the cluster's. */
#define LAXITY_OUTSIDE 0x8000u

/* What is known of each task; user space reads it. */
struct laxity_job {
	u64 period;
	u64 deadline;
	/* The next release while `waits`, else that of the present job; on the monotonic clock. */
	u64 release;
	/* How late a job was at most, and how long one took at most. */
	u64 tardiness_max;
	u64 response_max;
	/* 0: no task has this number. */
	s32 pid;
	/* 1: for its next release, 2: for its next budget, 3: for an event; taken by the CPU that gives it. */
	u32 waits;
	/* Jobs released; the last one has this number, from 1. */
	u32 released;
	u32 completed;
	u32 late;
	/* Where its control page is. */
	u16 page;
	u16 entry;
	u16 cluster;
	/* It was sent where Linux insists on it, and its job is linked elsewhere. */
	u16 strays;
	/* It keeps a CPU that another job should have, since then, because it is in a non-preemptive section; 0: it does not. */
	u64 kept_since;
	/* Of a task without a budget only `due` means something: the absolute deadline. See budgets.h. */
	struct laxity_server server;
	/* It executes, and is charged up to here; 0: it has no CPU. */
	u64 since;
	/* When the last job was complete. */
	u64 idle_since;
	/* How often a budget was used up. */
	u32 throttled;
	/* Where its thread runs, of all CPUs. */
	u32 cpu;
	/* Under fixed priorities. */
	u64 level;
	/* The effective priority of its job, and the task that it belongs to. See inherit.h. */
	u64 urgency;
	u32 of;
	/* While it sleeps for it: the number of the task that has what it waits for, plus 1; LAXITY_NONE: none has; 0: it waits for none. */
	u32 waits_for;
	/* Of a thread that handles interrupts: its budget while it works for no task; 0: this is a task. See interrupts.h. */
	u64 anonymous;
	/* The number of the task that it works for, or last did, plus 1; 0: for none. */
	u32 owner;
	/* How often it worked for a task. */
	u32 owned;
	/* When the present or last job is due, and whether its thread says when its jobs are released. See arrivals.h. */
	u64 due;
	u64 is_told;
};

/* What a thread and the scheduler tell each other, in the page of its process. The thread writes the first line only. */
struct laxity_entry {
	/*
	 * The thread: 1: its job is complete; 2: it is once the thread sleeps, for an event. The scheduler takes that back. Of a
	 * program that knows nothing of jobs the scheduler has set 3 when it began: each sleep completes one.
	 */
	u32 is_complete;
	/* The thread: it wants to be a task no more. */
	u32 leaves;
	/*
	 * The thread: 1: it is in a non-preemptive section; more: in one, too, and what `next` and `due` say is of the job that it
	 * releases by waking another thread of its process: see arrivals.h.
	 */
	u32 is_non_preemptive;
	/*
	 * The thread, before it sleeps: the entry of the task that has what it waits for, plus 1; LAXITY_ENTRIES: it waits, and
	 * no task has at least its priority for that; 0: it does not wait. Other threads may change it while it sleeps, and say so in `changed`.
	 */
	u32 waits_for;
	/* The thread, before it waits for devices: the numbers of the interrupt threads that work for it, plus 1; 0: none. */
	u32 served_by[LAXITY_SERVED];
	/*
	 * The thread, before its job is complete, where it says when jobs are released: the next release, 0: at an event; and when
	 * that job is due, 0: as all of its task are. On the monotonic clock.
	 */
	u64 next;
	u64 due;
	/* The number of the present job, from 1. */
	u32 job;
	/* Another job waits for the end of the section: the thread yields then. */
	u32 is_awaited;
	/* Of the present job, on the monotonic clock. */
	u64 release;
	u64 deadline;
	/* Since when its thread has a CPU, on the monotonic clock, where that is measured. */
	u64 runs_since;
	/* How often its budget was used up. */
	u64 throttled;
	u64 spare[3];
};

/* One page a process, which only that process and the scheduler can see. */
struct laxity_page {
	/* Whether the scheduler schedules; 0: Linux does, and nothing more is to be waited for. */
	u32 is_alive;
	/*
	 * The threads of the process: whose word `waits_for` another one has changed, a bit for each entry. The scheduler takes that back when
	 * it looks, which is when a thread sleeps for a task or wakes from that, or yields.
	 */
	u32 changed;
	u32 unused[30];
	struct laxity_entry entry[LAXITY_ENTRIES - 1];
};

/* By its size: clang does not describe a type that only this one refers to. */
struct laxity_page_map {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(key_size, 4);
	MAP_NUMBER(value_size, LAXITY_PAGE);
};
_Static_assert(sizeof(struct laxity_page) == LAXITY_PAGE, "a page of a process is a page of memory");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	MAP_NUMBER(max_entries, LAXITY_PAGES);
	MAP_TYPE(key, u32);
	MAP_NUMBER(value_size, 4);
	struct laxity_page_map *values[];
} pages SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_TASKS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct laxity_job);
} jobs SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_TASK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, s32);
	MAP_TYPE(value, u32);
} numbers SEC(".maps");

/* The number of the task with an entry of a page, plus 1. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_PAGES * LAXITY_ENTRIES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} places SEC(".maps");

/* What happens, for a trace. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 20);
} notes SEC(".maps");

/* What user space sets before the programs are loaded. */
struct laxity_setting {
	/* Whether `notes` is written. */
	u32 is_traced;
	/* Whether jobs rank by the levels of their tasks. */
	u32 by_task;
	/* Of each CPU: its cluster, LAXITY_NONE: none; and its number there. */
	u16 cluster_of[LAXITY_CPUS];
	u16 local_of[LAXITY_CPUS];
	/* The CPU `first_of[cluster] + local` of this list. */
	u16 first_of[LAXITY_CLUSTERS];
	u16 cpu_at[LAXITY_CPUS];
	/* What other threads have of each CPU in each period at least, in ns; a period of 0: nothing. See others.h. */
	u64 others_budget;
	u64 others_period;
	/* The scheduling quantum in ns, 0: decisions are taken at events; and how late each CPU's quanta are. See quanta.h. */
	u64 quantum;
	u64 phase_of[LAXITY_CPUS];
	/* Whether each CPU decides for itself. */
	u32 is_staggered;
	/* The CPU that releases all jobs and has none; LAXITY_NONE: there is none. */
	u32 dedicated;
	/* Whether it is written down how long the scheduler takes: see measure.h. */
	u32 is_measured;
	u32 unused;
};

/* What user space looks at while they run. */
struct laxity_state {
	/* Notes that did not fit into the buffer. */
	u64 lost;
	/* Numbers of tasks in use are below this. */
	u32 tasks;
	/* Why sched_ext ended the scheduler: enum scx_exit_kind; 0: it has not. */
	s32 ended;
	char reason[64];
	char message[256];
	/* Intervals that did not fit into the buffer. */
	u64 unmeasured;
};

/* What sched_ext found where it ended the scheduler because of an error: CPUs and the threads that could run. */
char dump[LAXITY_DUMP] SEC(".bss.dump") = {};

const volatile struct laxity_setting setting SEC(".rodata.setting") = {};
struct laxity_state state SEC(".bss.state") = {};

LAXITY_INLINE struct laxity_job *job_of(u32 number)
{
	return bpf_map_lookup_elem(&jobs, &number);
}

/* The number of a thread that is a task; LAXITY_NONE. */
LAXITY_INLINE u32 number_of(struct task_struct *task)
{
	u32 *number = bpf_task_storage_get(&numbers, task, 0, 0);

	return number && *number ? *number - 1 : LAXITY_NONE;
}

LAXITY_INLINE struct laxity_page *page_of(u32 number)
{
	void *page = bpf_map_lookup_elem(&pages, &number);
	u32 zero = 0;

	return page ? bpf_map_lookup_elem(page, &zero) : 0;
}

/* The entry of a task in its page, if that has one. */
LAXITY_INLINE struct laxity_entry *entry_in(struct laxity_page *page, struct laxity_job *job)
{
	u32 entry = job->entry;

	return page && entry < LAXITY_ENTRIES - 1 ? &page->entry[entry] : 0;
}

LAXITY_INLINE struct laxity_entry *entry_of(struct laxity_job *job)
{
	return entry_in(page_of(job->page), job);
}

/* The number that `cpu` has in `cluster`; LAXITY_NONE: it is not of that cluster. */
LAXITY_INLINE u32 local_of(u32 cluster, s32 cpu)
{
	u32 at = cpu & (LAXITY_CPUS - 1);

	return setting.cluster_of[at] == cluster ? setting.local_of[at] : LAXITY_NONE;
}

/* The same, but one outside says which it is: above all numbers of CPUs. */
LAXITY_INLINE u32 place_of(u32 cluster, s32 cpu)
{
	u32 at = cpu & (LAXITY_CPUS - 1);

	return setting.cluster_of[at] == cluster ? setting.local_of[at] : LAXITY_OUTSIDE | at;
}

/* As measure.h says. */
LAXITY_GLOBAL int note_kick(u32 cpu);

/* CPUs that are to be interrupted, a bit each; `first`: where those of their cluster begin in setting.cpu_at. */
struct kicks {
	u64 left;
	u32 first;
};

static s64 kick_next(u32 round, struct kicks *kicks)
{
	u32 cpu;

	if (!kicks->left)
		return 1;
	cpu = setting.cpu_at[(kicks->first + laxity_first_of(kicks->left)) & (LAXITY_CPUS - 1)];
	kicks->left &= kicks->left - 1;
	if (setting.is_measured)
		note_kick(cpu);
	scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	return 0;
}

/* Interrupts the CPUs of `cluster` in `kicks`, a bit each. */
LAXITY_GLOBAL int kick_all(u32 cluster, u64 kicks)
{
	struct kicks all = { .left = kicks, .first = setting.first_of[cluster & (LAXITY_CLUSTERS - 1)] };

	bpf_loop(LAXITY_CPUS, kick_next, &all, 0);
	return 0;
}

/* As quanta.h says. */
LAXITY_GLOBAL int await_quantum(u32 cluster, u64 since);

/* A job waits for a quantum to begin since the event `kind`, which is due at its release if it is one. */
LAXITY_INLINE void await_link(u32 kind, struct laxity_note *note)
{
	struct laxity_job *job = kind == HAPPENS_RELEASE ? job_of(note->task) : 0;
	u64 since = note->at;

	if (job)
		since = job->release > job->idle_since ? job->release : job->idle_since;
	await_quantum(note->cluster, since);
}

/*
 * Has `note` happen, whose CPU is one of all CPUs, writes it down, and kicks the CPUs that it concerns. Returns the core's
 * answer; the rest is in `note`.
 */
LAXITY_INLINE int carry_out_here(struct laxity_note *note)
{
	u32 kind = note->kind;
	int outcome;

	/* An owner is no CPU. */
	if (kind != HAPPENS_WORK)
		note->cpu = place_of(note->cluster, note->cpu);
	outcome = laxity_happen(note);
	if (note->is_news || note->links) {
		if (setting.is_traced && bpf_ringbuf_output(&notes, note, sizeof(*note), BPF_RB_NO_WAKEUP))
			__sync_fetch_and_add(&state.lost, 1);
		if (note->kicks)
			kick_all(note->cluster, note->kicks);
	}
	/* By nothing else does a job come to wait for a link, but by the end of work for it: see end_work. */
	if (setting.quantum && note->state == LAXITY_READY &&
	    (kind == HAPPENS_RELEASE || kind == HAPPENS_RESUME || kind == HAPPENS_WORK))
		await_link(kind, note);
	return outcome;
}

/* The same, which the verifier proves once, and not for each of its callers. */
LAXITY_GLOBAL int carry_out(struct laxity_note *note)
{
	return note ? carry_out_here(note) : LAXITY_NO_SUCH;
}

LAXITY_INLINE void describe(struct laxity_note *note, u32 kind, s32 cpu, u32 number, struct laxity_job *job)
{
	note->kind = kind;
	note->cluster = job->cluster;
	note->cpu = cpu;
	note->task = number;
}

/* Has something happen to task `number` on `cpu`, of all CPUs: see `carry_out_here`. */
LAXITY_INLINE int happen(struct laxity_note *note, u32 kind, s32 cpu, u32 number, struct laxity_job *job)
{
	describe(note, kind, cpu, number, job);
	return carry_out(note);
}

/* The same, for the timer: calls are eight deep at most. */
LAXITY_INLINE int happen_here(struct laxity_note *note, u32 kind, s32 cpu, u32 number, struct laxity_job *job)
{
	describe(note, kind, cpu, number, job);
	return carry_out_here(note);
}

#endif
