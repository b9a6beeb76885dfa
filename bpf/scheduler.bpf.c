/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Periodic and sporadic tasks in the kernel through sched_ext: the core's links carried out.
 *
 * Policy: clusters of CPUs, each with links by absolute deadlines or by levels, event-driven or quantum-driven, with interrupts on
 * all CPUs or on a dedicated one (paper 002, coarse lock: CEm, CE1, CQm, CQ1; quanta.h, alarm.h). A
 * thread becomes a task by `laxity_begin`. It ends a job by a word in its control page and sched_yield, or any sleep; the
 * program then keeps the thread (custody) until a timer releases the next job. All other threads share one queue, by
 * weight (shares.h), and run where no job is linked, or where they are owed time (others.h).
 * Guarantee: each CPU runs its linked job whenever that is runnable, and no other thread is owed time there.
 * A thread is in a non-preemptive section while a word in its page says so. The scheduler looks at that only where another
 * job should have the CPU: the thread keeps it, for 10 ms at most, and yields at the end of the section.
 * Threads of the kernel that handle interrupts have the priority of the job that they work for: interrupts.h.
 *
 * Races: links are decided under the lock of the core and carried out without. A CPU that reads a link just before it
 * changes is kicked by the one that changed it, and reads again. Custody changes under that lock, so one CPU gets the thread.
 * Each failure ends the scheduler with its reason, and Linux schedules all threads from then on: `laxity_exit` tells them by
 * their pages.
 */
#include "alarm.h"
#include "budgets.h"
#include "dump.h"
#include "inherit.h"
#include "interrupts.h"
#include "measure.h"
#include "others.h"
#include "quanta.h"
#include "sections.h"
#include "shares.h"
#include "strays.h"
#include "tasks.h"

/*
 * The job of task `number`, whose thread is or was on `cpu`, is complete: it waits for the next release. `sleeps`: the thread
 * does.
 */
LAXITY_INLINE void end_job(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job, struct laxity_entry *entry,
			   u64 sleeps)
{
	u64 due = job->due, response;

	charge(job);
	note->extra = sleeps;
	if (!job->waits) {
		if (happen(note, HAPPENS_COMPLETE, cpu, number, job) < 0) {
			FAIL("a completion was refused", job->pid);
			return;
		}
		response = note->at - job->release;
		job->completed++;
		job->idle_since = note->at;
		if (response > job->response_max)
			job->response_max = response;
		if (note->at > due) {
			job->late++;
			if (note->at - due > job->tardiness_max)
				job->tardiness_max = note->at - due;
		}
		await_next(entry, job, sleeps);
	} else if (sleeps) {
		happen(note, HAPPENS_SUSPEND, cpu, number, job);
	}
	if (!is_dedicated()) {
		rearm(number, sleeps);
		return;
	}
	/* A barrier: the dedicated CPU, which looks at the time of the release, sees what was written, or this sees that time. */
	__sync_lock_test_and_set(&note->kicks, 0);
	if (job->waits != WAITS_RELEASE)
		return;
	if (job->release <= bpf_ktime_get_ns())
		release_late(number);
	else if (job->is_told)
		await(number);
}

/* Its thread is a task no more; its number is free once `pid` is 0. */
LAXITY_INLINE void forget(struct laxity_note *note, s32 cpu, u32 number, struct laxity_job *job)
{
	job->pid = 0;
	job->waits = WAITS_NOT;
	job->kept_since = 0;
	/* Or the timer would interrupt its CPU for the end of its budget, again and again. */
	job->since = 0;
	end_wait(job, cpu);
	happen(note, HAPPENS_FORGET, cpu, number, job);
}

SEC("struct_ops/laxity_select") s32 laxity_select(unsigned long long *context)
{
	return (s32)context[1];
}

SEC("struct_ops/laxity_enqueue") int laxity_enqueue(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};
	s32 cpu = scx_bpf_task_cpu(task);
	u32 first;
	int outcome;

	if (!job) {
		enqueue_other(task, context[1]);
		return 0;
	}
	/* Its number, by which laxity_dispatch finds it, is not its own much longer. The microseconds left are not worth a queue. */
	if (task->exit_state) {
		forget(&note, cpu, number, job);
		bpf_task_storage_delete(&numbers, task);
		insert(task, DSQ_LOCAL, SLICE_STRAY, context[1]);
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
		return 0;
	}
	/* Before it is ready: until then one job alone has its priority. */
	end_wait(job, cpu);
	if (job->waits == WAITS_EVENT) {
		if (arrive(number))
			release_late(number);
		else
			await(number);
	}
	/* It woke, if its job was suspended or waits for that; else it lost its CPU. */
	note.extra = 1;
	if (job->anonymous)
		begin_work(&note, number, job);
	else if (job->waits != WAITS_BUDGET && laxity_is_resumable(job->cluster, number)) {
		outcome = happen(&note, HAPPENS_RESUME, cpu, number, job);
		if (outcome && outcome != LAXITY_NOT_SUSPENDED)
			FAIL("a wake-up was refused", task->pid);
	}
	job->strays = is_early(job, cpu, context[1]) ? STRAYS_EARLY : 0;
	if (job->strays) {
		enqueue_early(task, context[1]);
		return 0;
	}
	happen(&note, HAPPENS_PUT, cpu, number, job);
	/* Its job may have had that link before the thread came here: no change of links kicks that CPU. */
	if (note.linked_to != LAXITY_NONE) {
		first = setting.first_of[job->cluster & (LAXITY_CLUSTERS - 1)];
		scx_bpf_kick_cpu(setting.cpu_at[(first + note.linked_to) & (LAXITY_CPUS - 1)], KICK_PREEMPT);
	}
	return 0;
}

/* Linux takes the thread back for a moment, to change its class or CPUs. */
SEC("struct_ops/laxity_dequeue") int laxity_dequeue(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};

	if (job)
		happen(&note, HAPPENS_TAKE, scx_bpf_task_cpu(task), number, job);
	else
		take_displaced(task);
	return 0;
}

/* The thread that was on `cpu` says that its job is complete, or that it leaves. */
LAXITY_INLINE void hear(struct laxity_note *note, s32 cpu, struct task_struct *task, u32 number, struct laxity_job *job)
{
	struct laxity_page *page = page_of(job->page);
	struct laxity_entry *entry = entry_in(page, job);

	if (!page || !entry)
		return;
	if (page->changed)
		settle_from(LAXITY_NONE, job->page, 0, cpu);
	if (entry->leaves || entry->is_complete == COMPLETE)
		end_section(note, cpu, number, job);
	if (entry->leaves) {
		entry->leaves = 0;
		if (!job->waits && happen(note, HAPPENS_COMPLETE, cpu, number, job) >= 0)
			job->completed++;
		forget(note, cpu, number, job);
		bpf_task_storage_delete(&numbers, task);
	} else if (entry->is_complete == COMPLETE) {
		entry->is_complete = COMPLETE_NOT;
		end_job(note, cpu, number, job, entry, 0);
	}
}

/* Gives `cpu` to another thread, one that waits or the one that has it. Returns whether there is one. */
LAXITY_INLINE int give(s32 cpu, u64 now, struct task_struct *before, struct laxity_job *job, u64 owes)
{
	others_on(cpu)->go_first_in = period_of(cpu, now);
	if (!take_first(OTHERS)) {
		if (!before || job || !(before->scx.flags & IS_QUEUED)) {
			owe_nothing(cpu, now);
			return 0;
		}
		before->scx.slice = owes;
	}
	/* For when they have had enough. */
	await_others();
	return 1;
}

/* The event that each CPU notes where it decides, with interrupts off: the stack has no room for it. */
struct laxity_note decisions[LAXITY_CPUS] SEC(".bss.decisions") = {};

/* Which thread `cpu` has next, in place of `before`. Returns an enum laxity_decided. */
LAXITY_INLINE u32 decide(s32 cpu, struct task_struct *before)
{
	struct task_struct *task;
	u32 cluster = setting.cluster_of[cpu & (LAXITY_CPUS - 1)], local = setting.local_of[cpu & (LAXITY_CPUS - 1)];
	u32 number = before ? number_of(before) : LAXITY_NONE, next, completed;
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note *note = &decisions[cpu & (LAXITY_CPUS - 1)];
	u64 now = bpf_ktime_get_ns(), later, owes = owed(cpu, now, &later);

	*note = (struct laxity_note){};
	if (setting.is_staggered)
		take_tick(cpu);
	if (is_dedicated() && cpu == (s32)setting.dedicated)
		look_again();
	if (!owes)
		others_on(cpu)->go_first_in = 0;
	if (before && job) {
		completed = job->completed;
		hear(note, cpu, before, number, job);
		if (before->scx.flags & IS_QUEUED && job->pid) {
			/* A job that has not run yet, as the last one is just complete, begins first: the timer is set for it. */
			if (job->completed == completed && is_exhausted(job)) {
				end_section(note, cpu, number, job);
				throttle(note, cpu, number, job);
				await(number);
			} else {
				if (job->server.budget)
					rank_anew(cpu, number);
				attend(note, cpu, number, job, owes);
			}
		}
	}
	if (owes && !(job && job->kept_since) && give(cpu, now, before, job, owes))
		return job ? DECIDED : DECIDED_ELSE;
	next = cluster == LAXITY_NONE ? LAXITY_NONE : laxity_to_run(cluster, local);
	if (before && next != LAXITY_NONE && next == number && before->scx.flags & IS_QUEUED && job) {
		/* It goes on, perhaps with its next job. */
		if (happen(note, HAPPENS_RUN, cpu, number, job) < 0)
			FAIL("a switch was refused", before->pid);
		before->scx.slice = job->kept_since ? SECTION_MAX : SLICE_ENDLESS;
		if (job->server.budget)
			await(number);
		return DECIDED;
	}
	job = next == LAXITY_NONE ? 0 : job_of(next);
	/* Where its thread is still on its way, laxity_enqueue kicks this CPU once it is there. */
	if (job && happen(note, HAPPENS_CLAIM, cpu, next, job) > 0) {
		task = bpf_task_from_pid(job->pid);
		if (task) {
			send(cpu, task, job);
			bpf_task_release(task);
			return DECIDED_SWITCH;
		}
	}
	if (!is_throttled(cpu, now) && !(before && number == LAXITY_NONE && goes_on(cpu, before)))
		take_first(OTHERS);
	return number == LAXITY_NONE ? DECIDED_ELSE : DECIDED;
}

SEC("struct_ops/laxity_dispatch") int laxity_dispatch(unsigned long long *context)
{
	s32 cpu = (s32)context[0];
	u32 decided;

	begin_decision(cpu);
	heed_brake(cpu);
	decided = decide(cpu, (struct task_struct *)context[1]);
	end_decision(cpu, decided);
	return 0;
}

SEC("struct_ops/laxity_running") int laxity_running(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};
	s32 cpu = scx_bpf_task_cpu(task);

	if (!job) {
		end_switch(cpu, 0);
		begin_other(cpu);
		begin_share(cpu, task);
		return 0;
	}
	/* The thread may have become a task while it had the CPU. */
	end_other(cpu);
	share_of(cpu)->since = 0;
	share_of(cpu)->yields = 0;
	others_on(cpu)->go_first_in = 0;
	if (happen(&note, HAPPENS_RUN, cpu, number, job) < 0)
		FAIL("a switch was refused", task->pid);
	if (job->server.budget) {
		job->cpu = cpu;
		job->since = note.at;
		await(number);
	}
	/* Its link moved while it was on its way: this CPU has another job, or none. */
	if (note.state != LAXITY_INACTIVE && note.linked_to != note.cpu && !job->strays)
		scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
	end_switch(cpu, job);
	return 0;
}

SEC("struct_ops/laxity_stopping") int laxity_stopping(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};

	end_other(scx_bpf_task_cpu(task));
	end_share(scx_bpf_task_cpu(task), task, job != 0);
	if (!job)
		return 0;
	charge(job);
	job->since = 0;
	/* What cannot go on is quiescent next. */
	if (context[1]) {
		end_section(&note, scx_bpf_task_cpu(task), number, job);
		happen(&note, HAPPENS_STOP, scx_bpf_task_cpu(task), number, job);
	}
	return 0;
}

SEC("struct_ops/laxity_quiescent") int laxity_quiescent(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};
	s32 cpu = scx_bpf_task_cpu(task);
	struct laxity_entry *entry;
	int outcome;

	if (!job)
		return 0;
	entry = entry_of(job);
	end_section(&note, cpu, number, job);
	if (task->exit_state) {
		/* laxity_disable comes only once nothing refers to it any more. */
		forget(&note, cpu, number, job);
		bpf_task_storage_delete(&numbers, task);
	} else if (!(context[1] & DEQUEUED_TO_SLEEP)) {
		happen(&note, HAPPENS_STOP, cpu, number, job);
	} else if (job->anonymous) {
		end_work(&note, cpu, number, job);
	} else if (entry && entry->is_complete) {
		if (entry->is_complete != COMPLETE_EACH)
			entry->is_complete = COMPLETE_NOT;
		end_job(&note, cpu, number, job, entry, 1);
	} else {
		note.extra = 1;
		outcome = happen(&note, HAPPENS_SUSPEND, cpu, number, job);
		/* Between two jobs it has none that could suspend itself. */
		if (outcome < 0 && outcome != LAXITY_NOT_PENDING)
			FAIL("a suspension was refused", task->pid);
		if (entry && outcome >= 0)
			begin_wait(number, job, entry, cpu);
	}
	return 0;
}

SEC("struct_ops/laxity_yield") int laxity_yield(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];

	task->scx.slice = 0;
	share_of(scx_bpf_task_cpu(task))->yields = 1;
	return 0;
}

/* A class above has the CPU: what waits there for its end would keep its CPU, so it is handed back. */
SEC("struct_ops/laxity_cpu_release") int laxity_cpu_release(unsigned long long *context)
{
	scx_bpf_reenqueue_local();
	return 0;
}

/* The thread leaves sched_ext or ends: its job ends, wherever it is. */
SEC("struct_ops/laxity_disable") int laxity_disable(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_note note = {};

	if (!job)
		return 0;
	forget(&note, scx_bpf_task_cpu(task), number, job);
	bpf_task_storage_delete(&numbers, task);
	return 0;
}

SEC("struct_ops.s/laxity_init") s32 laxity_init_scheduler(unsigned long long *context)
{
	struct alarm *alarm = alarm_of(ALARM), *dedicated = alarm_of(ALARM_DEDICATED);

	if (!alarm || !dedicated || !LAXITY_DESCRIBE(struct cpumask))
		return -1;
	alarm->set = alarm->others_at = dedicated->set = LAXITY_NEVER;
	bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&alarm->timer, on_timer);
	if (is_dedicated()) {
		bpf_timer_init(&dedicated->timer, &alarms, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&dedicated->timer, on_dedicated_timer);
	}
	set_up_shares();
	return scx_bpf_create_dsq(OTHERS, -1);
}

/* However it ends: by its loader, by the loader's death, by an error or by the watchdog. */
SEC("struct_ops/laxity_exit") int laxity_exit_scheduler(unsigned long long *context)
{
	struct scx_exit_info *info = (struct scx_exit_info *)context[0];
	u32 at;

	for (at = 0; at < LAXITY_PAGES; at++) {
		struct laxity_page *page = page_of(at);

		if (page)
			page->is_alive = 0;
	}
	end_shares();
	bpf_probe_read_kernel_str(state.reason, sizeof(state.reason), info->reason);
	bpf_probe_read_kernel_str(state.message, sizeof(state.message), info->msg);
	bpf_probe_read_kernel_str(dump, sizeof(dump), info->dump);
	state.ended = info->kind;
	return 0;
}

#include "requests.h"

/* What both kinds of kernels are told. */
#define LAXITY_OPS(more)                                                                                \
	{                                                                                               \
		.select_cpu = (void *)laxity_select,                                                    \
		.enqueue = (void *)laxity_enqueue,                                                      \
		.dequeue = (void *)laxity_dequeue,                                                      \
		.dispatch = (void *)laxity_dispatch,                                                    \
		.running = (void *)laxity_running,                                                      \
		.stopping = (void *)laxity_stopping,                                                    \
		.quiescent = (void *)laxity_quiescent,                                                  \
		.yield = (void *)laxity_yield,                                                          \
		.cpu_release = (void *)laxity_cpu_release,                                              \
		.enable = (void *)laxity_enable,                                                        \
		.disable = (void *)laxity_disable,                                                      \
		.dump_cpu = (void *)laxity_dump_cpu,                                                    \
		.dump_task = (void *)laxity_dump_task,                                                  \
		.init = (void *)laxity_init_scheduler,                                                  \
		.exit = (void *)laxity_exit_scheduler,                                                  \
		.flags = OPS_KEEP_BUILTIN_IDLE | OPS_ENQUEUE_LAST | OPS_ENQUEUE_EXITING | (more),       \
		.timeout_ms = 30000,                                                                    \
		.name = "laxity",                                                                       \
	}

/*
 * All threads come to laxity_enqueue. Linux puts those that are left out into the CPU's own queue, and while that is not
 * empty it asks for nothing: a linked job and a thread that cannot leave the CPU (it is in a BPF program, as the loader
 * at laxity_begin) would preempt each other for ever.
 */
SEC(".struct_ops.link") struct sched_ext_ops laxity = LAXITY_OPS(OPS_ENQUEUE_MIGRATION_DISABLED);
/* Of a kernel that has them come without being asked (Linux 6.12 and 6.13). */
SEC(".struct_ops.link") struct sched_ext_ops laxity_older = LAXITY_OPS(0);

char laxity_license[] SEC("license") = "GPL";
