/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The little of sched_ext that the scheduler uses, by the names of Linux 6.12 to 7.3; members that the kernel at hand does
 * not have are refused when the scheduler is loaded.
 */
#ifndef LAXITY_SCHED_EXT_H
#define LAXITY_SCHED_EXT_H

#include "kernel.h"

/* Of linux/sched/ext.h and kernel/sched/ext.c. */
enum {
	KICK_IDLE = 1,
	KICK_PREEMPT = 2,
	DEQUEUED_TO_SLEEP = 1,
	IS_QUEUED = 1,
	OPS_KEEP_BUILTIN_IDLE = 1,
	OPS_ENQUEUE_LAST = 2,
	OPS_ENQUEUE_EXITING = 4,
	OPS_ENQUEUE_MIGRATION_DISABLED = 16,
};
/* Goes through a queue, in its order. */
struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

/* It slept until now. */
#define ENQUEUED_AWAKE 1
/* Handed back by scx_bpf_reenqueue_local. */
#define ENQUEUED_AGAIN (1ull << 40)
#define DSQ_LOCAL (1ull << 63 | 2)
#define DSQ_LOCAL_ON (1ull << 63 | 1ull << 62)

/* Where the kernel has it: its address is 0 elsewhere, and the verifier takes out what would call it. */
#define WHERE_THERE __attribute__((weak)) SEC(".ksyms")

void scx_bpf_dsq_insert(struct task_struct *task, u64 queue, u64 slice, u64 flags) WHERE_THERE;
void scx_bpf_dsq_insert_vtime(struct task_struct *task, u64 queue, u64 slice, u64 virtual_time, u64 flags) WHERE_THERE;
_Bool scx_bpf_dsq_move_to_local(u64 queue) WHERE_THERE;
/* As Linux 6.12 calls these three; user space knows the pairs, too (kernel/functions.rs). */
void scx_bpf_dispatch(struct task_struct *task, u64 queue, u64 slice, u64 flags) WHERE_THERE;
void scx_bpf_dispatch_vtime(struct task_struct *task, u64 queue, u64 slice, u64 virtual_time, u64 flags) WHERE_THERE;
_Bool scx_bpf_consume(u64 queue) WHERE_THERE;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 queue, u64 flags) SEC(".ksyms");
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) SEC(".ksyms");
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) SEC(".ksyms");
s32 scx_bpf_dsq_nr_queued(u64 queue) SEC(".ksyms");
s32 scx_bpf_create_dsq(u64 queue, s32 node) SEC(".ksyms");
void scx_bpf_kick_cpu(s32 cpu, u64 flags) SEC(".ksyms");
s32 scx_bpf_task_cpu(const struct task_struct *task) SEC(".ksyms");
s32 scx_bpf_pick_idle_cpu(const struct cpumask *among, u64 flags) SEC(".ksyms");
u32 scx_bpf_reenqueue_local(void) SEC(".ksyms");
void scx_bpf_dump_bstr(char *format, unsigned long long *data, u32 size) SEC(".ksyms");
void scx_bpf_error_bstr(char *format, unsigned long long *data, u32 size) SEC(".ksyms");
_Bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) SEC(".ksyms");
struct task_struct *bpf_task_from_pid(s32 pid) SEC(".ksyms");
void bpf_task_release(struct task_struct *task) SEC(".ksyms");

enum scx_exit_kind { NOT_ENDED };

struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
	char *dump;
} LAXITY_KERNEL;

struct scx_dump_ctx;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *task, s32 before, u64 flags);
	void (*enqueue)(struct task_struct *task, u64 flags);
	void (*dequeue)(struct task_struct *task, u64 flags);
	void (*dispatch)(s32 cpu, struct task_struct *before);
	void (*running)(struct task_struct *task);
	void (*stopping)(struct task_struct *task, _Bool is_runnable);
	void (*quiescent)(struct task_struct *task, u64 flags);
	_Bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*cpu_release)(s32 cpu, void *why);
	void (*enable)(struct task_struct *task);
	void (*disable)(struct task_struct *task);
	void (*dump_cpu)(struct scx_dump_ctx *context, s32 cpu, _Bool is_idle);
	void (*dump_task)(struct scx_dump_ctx *context, struct task_struct *task);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* Puts `task`, which Linux is about to queue or the scheduler has, into a queue of sched_ext. */
LAXITY_INLINE void insert(struct task_struct *task, u64 queue, u64 slice, u64 flags)
{
	if (scx_bpf_dsq_insert)
		scx_bpf_dsq_insert(task, queue, slice, flags);
	else
		scx_bpf_dispatch(task, queue, slice, flags);
}

/* The same, into one that is ordered by that time. */
LAXITY_INLINE void insert_by_time(struct task_struct *task, u64 queue, u64 slice, u64 time, u64 flags)
{
	if (scx_bpf_dsq_insert_vtime)
		scx_bpf_dsq_insert_vtime(task, queue, slice, time, flags);
	else
		scx_bpf_dispatch_vtime(task, queue, slice, time, flags);
}

/* Gives the CPU that asks which thread is next the first one of a queue; whether there is one. */
LAXITY_INLINE int take_first(u64 queue)
{
	return scx_bpf_dsq_move_to_local ? scx_bpf_dsq_move_to_local(queue) : scx_bpf_consume(queue);
}

/* Ends the scheduler: Linux schedules all threads from then on, and the loader says why. */
#define FAIL(reason, pid)                                                   \
	do {                                                                \
		static char format[] = "laxity: " reason ", thread %d";     \
		unsigned long long data[] = { (unsigned long long)(pid) };  \
		scx_bpf_error_bstr(format, data, sizeof(data));             \
	} while (0)

#endif
