/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares of the threads that are no tasks, and CPUs on which they may not run for a while. Part of scheduler.bpf.c.
 *
 * Policy: fair.h. All of them wait in one queue, ordered by virtual time, for any CPU that they may use and no job wants; there is
 * one clock. So shares are by weight where threads may use the same CPUs. Where a CPU has more bound threads than others,
 * these fall behind the clock, and are brought up to it: then they take turns.
 * A regulator (laxity-bandwidth) throttles a CPU by a time in a page that it shares with the scheduler, and the thread that used
 * the budget up is charged for it at once: what it waits for ends at that time, whatever becomes of the regulator. Jobs are never
 * throttled.
 * Guarantee: a throttle that this CPU heeds ends at its time, and BRAKE_MAX after it began at the latest.
 *
 * Races: CPUs move the clock without a lock. One may take it back by what another added at that moment; the next choice adds it again.
 */
#ifndef LAXITY_SHARES_H
#define LAXITY_SHARES_H

#include "fair.h"
#include "tasks.h"

/* The queue in which they wait. */
#define OTHERS 1
#define SLICE_OTHERS 5000000ull
/* The longest period of a regulator. */
#define BRAKE_MAX 100000000ull
/* For so long after a throttle the thread that a regulator interrupts is kept until that has decided. */
#define BRAKE_RECENT 100000000ull

/* A regulator, on its CPU: no thread that is no task runs there until then. */
struct laxity_brake {
	u64 until;
	/* The thread that is charged for that, 0: the one that was interrupted; with this, in millionths of the time. */
	u32 thread;
	u32 punishment;
	u64 unused[2];
};

struct laxity_brakes {
	/* Whether the scheduler looks here. */
	u32 is_alive;
	u32 unused[15];
	struct laxity_brake of[LAXITY_CPUS];
	u64 spare[248];
};
_Static_assert(sizeof(struct laxity_brakes) == LAXITY_PAGE, "it is mapped");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct laxity_brakes);
} brakes SEC(".maps");

/* The ends of throttles. */
struct brake_end {
	struct bpf_timer timer;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_CPUS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct brake_end);
} brake_ends SEC(".maps");

/* What a thread is still to be charged, because it was in the queue at that time. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_TASK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, s32);
	MAP_TYPE(value, u64);
} debts SEC(".maps");

/* Of a CPU, which alone writes it; user space reads it. */
struct laxity_share {
	/* What other threads executed here, and how much of that passed while the CPU was throttled; in ns. */
	u64 had;
	/* For how long it was to be throttled, how often, and what threads were charged for that, in virtual time. */
	u64 throttled;
	u64 charged;
	u64 throttles;
	/* One executes since then; 0: none does. */
	u64 since;
	/* What the page said last; and when that throttle ends. */
	u64 heeded;
	u64 until;
	/* The thread that a regulator interrupted, in no queue until this CPU chooses again; 0. */
	u64 displaced;
	/* Whether the thread that executes here lets others go first. */
	u64 yields;
	u64 unused[7];
};

struct laxity_share shares[LAXITY_CPUS] SEC(".bss.shares") = {};
struct laxity_fair fair SEC(".bss.fair") = {};
/* Whether any thread has had debts. */
u32 have_debts SEC(".bss.fair") = 0;

LAXITY_INLINE struct laxity_share *share_of(s32 cpu)
{
	return &shares[cpu & (LAXITY_CPUS - 1)];
}

LAXITY_INLINE int is_throttled(s32 cpu, u64 now)
{
	return share_of(cpu)->until > now;
}

/* The virtual time at which a thread that can run now waits. */
LAXITY_INLINE u64 place_in_queue(struct task_struct *task)
{
	u64 virtual_time = task->scx.dsq_vtime, *debt;

	/* It is new. */
	if (!virtual_time)
		virtual_time = fair.clock;
	debt = have_debts ? bpf_task_storage_get(&debts, task, 0, 0) : 0;
	if (debt)
		virtual_time += __sync_lock_test_and_set(debt, 0);
	return laxity_fair_place(&fair, virtual_time);
}

LAXITY_INLINE void queue_other(struct task_struct *task, u64 slice, u64 flags)
{
	insert_by_time(task, OTHERS, slice, place_in_queue(task), flags);
}

/*
 * Whether `task` is kept, and in no queue: Linux hands it back because a class above has its CPU. If that is a regulator that
 * throttles the CPU because of it, it is charged before it waits, as a thread that is in a queue cannot be.
 */
LAXITY_INLINE int displace(s32 cpu, struct task_struct *task, u64 flags)
{
	struct laxity_share *it = share_of(cpu);

	if (!(flags & ENQUEUED_AGAIN) || !it->until || it->displaced || task->exit_state)
		return 0;
	if (bpf_ktime_get_ns() - it->until > BRAKE_RECENT)
		return 0;
	it->displaced = task->pid;
	return 1;
}

/* Linux takes it back for a moment. */
LAXITY_INLINE void take_displaced(struct task_struct *task)
{
	__sync_val_compare_and_swap(&share_of(scx_bpf_task_cpu(task))->displaced, (u64)task->pid, 0);
}

/* The thread `pid` is charged `charge`; if it is `displaced` it waits in the queue from now on. */
LAXITY_INLINE void charge_other(s32 pid, u64 charge, int displaced)
{
	struct task_struct *task = bpf_task_from_pid(pid);
	u64 *debt;

	if (!task)
		return;
	if (charge) {
		debt = bpf_task_storage_get(&debts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		have_debts = 1;
		if (debt)
			__sync_fetch_and_add(debt, charge);
	}
	if (displaced)
		queue_other(task, SLICE_OTHERS, 0);
	bpf_task_release(task);
}

/*
 * This CPU, `cpu`, chooses: it heeds what a regulator wants, and the thread that one interrupted waits again. Returns whether none
 * that is no task may have the CPU.
 */
LAXITY_GLOBAL int heed_brake(s32 cpu)
{
	struct laxity_share *it = share_of(cpu);
	u32 at = 0, own = cpu & (LAXITY_CPUS - 1);
	struct laxity_brakes *page = bpf_map_lookup_elem(&brakes, &at);
	u64 now, until, punishment, charge = 0, displaced;
	struct brake_end *end;
	s32 pid = 0;

	if (!page)
		return 0;
	until = page->of[own].until;
	if (until == it->heeded && !it->until)
		return 0;
	now = bpf_ktime_get_ns();
	if (until != it->heeded) {
		it->heeded = until;
		if (until > now + BRAKE_MAX)
			until = now + BRAKE_MAX;
		if (until > now && until > it->until) {
			/* One that goes on is charged for the rest alone. */
			charge = until - (it->until > now ? it->until : now);
			it->until = until;
			it->throttled += charge;
			it->throttles++;
			punishment = page->of[own].punishment;
			if (punishment > LAXITY_PUNISHMENT_MAX)
				punishment = LAXITY_PUNISHMENT_MAX;
			charge = laxity_punishment(charge, punishment);
			it->charged += charge;
			pid = page->of[own].thread;
			end = bpf_map_lookup_elem(&brake_ends, &own);
			if (!end || bpf_timer_start(&end->timer, until, BPF_F_TIMER_ABS))
				FAIL("the timer of a throttled CPU cannot be started", pid);
		}
	}
	displaced = it->displaced ? __sync_lock_test_and_set(&it->displaced, 0) : 0;
	if (charge && pid && pid != (s32)displaced) {
		charge_other(pid, charge, 0);
		charge = 0;
	}
	if (displaced)
		charge_other(displaced, charge, 1);
	return it->until > now;
}

/* The CPU may have other threads again. If it has a job, or looks in vain, it would have looked anyway. */
static int on_brake_end(void *map, u32 *cpu, struct brake_end *end)
{
	scx_bpf_kick_cpu(*cpu, KICK_IDLE);
	return 0;
}

static s64 set_up_brake(u32 cpu, void *unused)
{
	struct brake_end *end = bpf_map_lookup_elem(&brake_ends, &cpu);

	if (end) {
		bpf_timer_init(&end->timer, &brake_ends, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&end->timer, on_brake_end);
	}
	return 0;
}

LAXITY_INLINE void set_up_shares(void)
{
	u32 at = 0;
	struct laxity_brakes *page = bpf_map_lookup_elem(&brakes, &at);

	/* Above 0, which says that a thread is new. */
	fair.clock = BRAKE_MAX;
	fair.at = bpf_ktime_get_ns();
	if (page)
		page->is_alive = 1;
	bpf_loop(LAXITY_CPUS, set_up_brake, 0, 0);
}

/* A regulator learns that it throttles no more. */
LAXITY_INLINE void end_shares(void)
{
	u32 at = 0;
	struct laxity_brakes *page = bpf_map_lookup_elem(&brakes, &at);

	if (page)
		page->is_alive = 0;
}

/* A thread that is no task has `cpu` from now on. */
LAXITY_INLINE void begin_share(s32 cpu, struct task_struct *task)
{
	u64 now = bpf_ktime_get_ns();

	share_of(cpu)->since = now;
	share_of(cpu)->yields = 0;
	laxity_fair_advance(&fair, task->scx.dsq_vtime, now);
}

/* What it had, if it still is none. */
LAXITY_INLINE void end_share(s32 cpu, struct task_struct *task, int is_task)
{
	struct laxity_share *it = share_of(cpu);
	u64 since = it->since, executed, weight;

	it->since = 0;
	if (!since || is_task)
		return;
	executed = bpf_ktime_get_ns() - since;
	it->had += executed;
	weight = task->policy == SCHED_IDLE ? LAXITY_IDLE_WEIGHT : laxity_weight(task->static_prio - MAX_RT_PRIO);
	task->scx.dsq_vtime += laxity_virtual_span(executed, weight);
}

/* Whether a thread that waits, and may have `cpu`, is before `virtual_time`. */
LAXITY_GLOBAL int is_one_before(s32 cpu, u64 virtual_time)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *task;
	int is = 0;

	bpf_iter_scx_dsq_new(&it, OTHERS, 0);
	while ((task = bpf_iter_scx_dsq_next(&it))) {
		/* One that may not leave another CPU. */
		if (!bpf_cpumask_test_cpu(cpu, task->cpus_ptr) || (task->migration_disabled && scx_bpf_task_cpu(task) != cpu))
			continue;
		is = laxity_is_before(task->scx.dsq_vtime, virtual_time);
		break;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return is;
}

/*
 * The slice of `task`, which is none of the tasks, is over, and Linux puts it into the queue only once another one is chosen: whether
 * it would be the first there, and so goes on.
 */
LAXITY_INLINE int goes_on(s32 cpu, struct task_struct *task)
{
	struct laxity_share *it = share_of(cpu);
	u64 now = bpf_ktime_get_ns();

	if (!(task->scx.flags & IS_QUEUED) || !it->since || it->yields)
		return 0;
	end_share(cpu, task, 0);
	it->since = now;
	if (is_one_before(cpu, task->scx.dsq_vtime))
		return 0;
	/* Only where it is chosen: else those that wait would be behind the clock. */
	laxity_fair_advance(&fair, task->scx.dsq_vtime, now);
	task->scx.slice = SLICE_OTHERS;
	return 1;
}

/* A thread joins sched_ext. */
SEC("struct_ops/laxity_enable") int laxity_enable(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];

	task->scx.dsq_vtime = 0;
	return 0;
}

#endif
