/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Periodic tasks in the kernel through sched_ext: the core's links carried out.
 *
 * Policy: one cluster of all CPUs, event-driven (paper 002: coarse lock, CEm), by absolute deadlines or by levels. A
 * thread becomes a task by `laxity_begin`; sched_yield ends its job, as under SCHED_DEADLINE. The program then keeps the
 * thread (custody) until a timer releases the next job. All other threads share one queue, first in first out, and run
 * where no job is linked.
 * Guarantee: each CPU runs its linked job whenever that is runnable.
 * Not handled: budgets, a server for all other threads (jobs that leave them no time for 30 s have the watchdog eject the
 * scheduler), non-preemptive sections, interrupt threads, clusters, control pages. Names of functions are those of Linux
 * 6.13 to 6.18.
 *
 * Races: links are decided under the lock of the core and carried out without. A CPU that reads a link just before it
 * changes is kicked by the one that changed it, and reads again. Each failure ends the scheduler with its reason, and
 * Linux schedules all threads from then on.
 */
#include "events.h"

#define ALL 0
#define OTHERS 1
#define SLICE_ENDLESS (~0ull)
#define SLICE_OTHERS 5000000ull

/* Of linux/sched/ext.h. */
enum {
	KICK_IDLE = 1,
	KICK_PREEMPT = 2,
	DEQUEUED_TO_SLEEP = 1,
	OPS_KEEP_BUILTIN_IDLE = 1,
	OPS_ENQUEUE_LAST = 2,
	OPS_ENQUEUE_EXITING = 4,
};
#define DSQ_LOCAL (1ull << 63 | 2)

void scx_bpf_dsq_insert(struct task_struct *task, u64 queue, u64 slice, u64 flags) SEC(".ksyms");
_Bool scx_bpf_dsq_move_to_local(u64 queue) SEC(".ksyms");
s32 scx_bpf_create_dsq(u64 queue, s32 node) SEC(".ksyms");
void scx_bpf_kick_cpu(s32 cpu, u64 flags) SEC(".ksyms");
s32 scx_bpf_task_cpu(const struct task_struct *task) SEC(".ksyms");
void scx_bpf_error_bstr(char *format, unsigned long long *data, u32 size) SEC(".ksyms");
struct task_struct *bpf_task_from_pid(s32 pid) SEC(".ksyms");
void bpf_task_release(struct task_struct *task) SEC(".ksyms");

struct sched_ext_exit;
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *task, s32 before, u64 flags);
	void (*enqueue)(struct task_struct *task, u64 flags);
	void (*dequeue)(struct task_struct *task, u64 flags);
	void (*dispatch)(s32 cpu, struct task_struct *before);
	void (*running)(struct task_struct *task);
	void (*stopping)(struct task_struct *task, _Bool is_runnable);
	void (*quiescent)(struct task_struct *task, u64 flags);
	_Bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*disable)(struct task_struct *task);
	s32 (*init)(void);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* What is known of each task of the core. */
struct job {
	u64 period;
	u64 deadline;
	/* The next release while `waits`, else that of the present job; on the monotonic clock. */
	u64 release;
	s32 pid;
	u32 waits;
	/* Its thread said that the job is complete. */
	u32 has_ended;
	/* Linux gave the thread to this program, which may hand it to a CPU. */
	u32 in_custody;
	/* Of completed jobs, those that were late, and by how much at most; for user space. */
	u32 completed;
	u32 late;
	u64 tardiness_max;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, LAXITY_TASKS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct job);
} jobs SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_TASK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, s32);
	MAP_TYPE(value, u32);
} numbers SEC(".maps");

struct alarm {
	struct bpf_timer timer;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct alarm);
} alarms SEC(".maps");

const volatile u32 cpus = 1;
const volatile u32 rule = LAXITY_BY_JOB;
u32 tasks;

#define FAIL(reason, pid)                                                   \
	do {                                                                \
		static char format[] = "laxity: " reason ", thread %d";     \
		unsigned long long data[] = { (unsigned long long)(pid) };  \
		scx_bpf_error_bstr(format, data, sizeof(data));             \
	} while (0)

static struct job *job_of(u32 number)
{
	return bpf_map_lookup_elem(&jobs, &number);
}

/* The number of a thread that is a task; LAXITY_NONE. */
static u32 number_of(struct task_struct *task)
{
	u32 *number = bpf_task_storage_get(&numbers, task, 0, 0);

	return number && *number ? *number - 1 : LAXITY_NONE;
}

static void kick_all(u64 kicks)
{
	u32 cpu;

	for (cpu = 0; cpu < LAXITY_CPUS; cpu++)
		if (kicks >> cpu & 1)
			scx_bpf_kick_cpu(cpu, KICK_PREEMPT);
}

static void settle(void)
{
	kick_all(laxity_settle(ALL));
}

/* Releases the jobs that are due, and returns when the next one is; all ones: never. */
LAXITY_GLOBAL u64 release_due(u64 now)
{
	u64 next = ~0ull;
	u32 at;

	for (at = 0; at < LAXITY_TASKS; at++) {
		struct job *job = job_of(at);

		if (!job || !job->waits)
			continue;
		if (job->release > now) {
			if (job->release < next)
				next = job->release;
			continue;
		}
		job->waits = 0;
		if (laxity_tell(ALL, LAXITY_RELEASE, 0, at, job->release + job->deadline))
			FAIL("a release was refused", job->pid);
	}
	return next;
}

/*
 * Releases what is due and sets the timer to the next release. Several CPUs may do so at once, and the one that sets it
 * last may know of a later release only: so each looks again after it has set it.
 */
static inline __attribute__((always_inline)) int arm(struct alarm *alarm)
{
	u64 next, set = ~0ull;
	u32 round;

	for (round = 0; round < 4; round++) {
		next = release_due(bpf_ktime_get_ns());
		if (next >= set)
			return 0;
		if (bpf_timer_start(&alarm->timer, next, BPF_F_TIMER_ABS))
			return -1;
		set = next;
	}
	return 0;
}

static int on_timer(void *map, u32 *key, struct alarm *alarm)
{
	arm(alarm);
	settle();
	return 0;
}

/* The job of task `number` is complete: it waits for the next release, and the timer for the next of all. */
static void end_job(u32 cpu, u32 number, struct job *job)
{
	u64 now = bpf_ktime_get_ns(), due = job->release + job->deadline;
	u32 zero = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &zero);

	job->has_ended = 0;
	if (!job->waits) {
		if (laxity_tell(ALL, LAXITY_COMPLETE, cpu, number, 0)) {
			FAIL("a completion was refused", job->pid);
			return;
		}
		job->completed++;
		if (now > due) {
			job->late++;
			if (now - due > job->tardiness_max)
				job->tardiness_max = now - due;
		}
		job->release += job->period;
		job->waits = 1;
	}
	if (!alarm || arm(alarm))
		FAIL("the timer cannot be started", job->pid);
	settle();
}

SEC("struct_ops/laxity_select") s32 laxity_select(unsigned long long *context)
{
	return (s32)context[1];
}

SEC("struct_ops/laxity_enqueue") int laxity_enqueue(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task), linked;
	struct job *job = number == LAXITY_NONE ? 0 : job_of(number);
	int outcome;

	if (!job) {
		scx_bpf_dsq_insert(task, OTHERS, SLICE_OTHERS, context[1]);
		scx_bpf_kick_cpu(scx_bpf_task_cpu(task), KICK_IDLE);
		return 0;
	}
	job->in_custody = 1;
	/* It woke, if its job was suspended; else it lost its CPU. */
	outcome = laxity_tell(ALL, LAXITY_RESUME, 0, number, 0);
	if (outcome && outcome != LAXITY_NOT_SUSPENDED)
		FAIL("a wake-up was refused", task->pid);
	linked = laxity_put(ALL, number);
	settle();
	/* Its job may have had that link before the thread came here: no change of links kicks that CPU. */
	if (linked != LAXITY_NONE)
		scx_bpf_kick_cpu(linked, KICK_PREEMPT);
	return 0;
}

/* Linux takes the thread back for a moment, to change its class or CPUs. */
SEC("struct_ops/laxity_dequeue") int laxity_dequeue(unsigned long long *context)
{
	u32 number = number_of((struct task_struct *)context[0]);
	struct job *job = number == LAXITY_NONE ? 0 : job_of(number);

	if (job)
		job->in_custody = 0;
	return 0;
}

SEC("struct_ops/laxity_dispatch") int laxity_dispatch(unsigned long long *context)
{
	s32 cpu = (s32)context[0];
	struct task_struct *before = (struct task_struct *)context[1], *task;
	u32 number = before ? number_of(before) : LAXITY_NONE, next;
	struct job *job = number == LAXITY_NONE ? 0 : job_of(number);

	if (job && job->has_ended)
		end_job(cpu, number, job);
	next = laxity_to_run(ALL, cpu);
	if (next != LAXITY_NONE && before && next == number) {
		before->scx.slice = SLICE_ENDLESS;
		return 0;
	}
	job = next == LAXITY_NONE ? 0 : job_of(next);
	/* Where it is still on its way, laxity_enqueue kicks this CPU once it is there. */
	if (job && job->in_custody && laxity_claim(ALL, cpu, next)) {
		task = bpf_task_from_pid(job->pid);
		if (task) {
			job->in_custody = 0;
			scx_bpf_dsq_insert(task, DSQ_LOCAL, SLICE_ENDLESS, 0);
			bpf_task_release(task);
			return 0;
		}
	}
	scx_bpf_dsq_move_to_local(OTHERS);
	return 0;
}

SEC("struct_ops/laxity_running") int laxity_running(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);

	if (number != LAXITY_NONE && laxity_tell(ALL, LAXITY_SWITCH, bpf_get_smp_processor_id(), number, 0))
		FAIL("a switch was refused", task->pid);
	return 0;
}

SEC("struct_ops/laxity_stopping") int laxity_stopping(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);

	if (number != LAXITY_NONE && laxity_tell(ALL, LAXITY_SWITCH, scx_bpf_task_cpu(task), LAXITY_NONE, 0))
		FAIL("a switch was refused", task->pid);
	return 0;
}

SEC("struct_ops/laxity_quiescent") int laxity_quiescent(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	int outcome;

	if (number == LAXITY_NONE || !(context[1] & DEQUEUED_TO_SLEEP))
		return 0;
	outcome = laxity_tell(ALL, LAXITY_SUSPEND, scx_bpf_task_cpu(task), number, 0);
	/* Between two jobs it has none that could suspend itself. */
	if (outcome && outcome != LAXITY_NOT_PENDING)
		FAIL("a suspension was refused", task->pid);
	settle();
	return 0;
}

SEC("struct_ops/laxity_yield") int laxity_yield(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task);
	struct job *job = number == LAXITY_NONE ? 0 : job_of(number);

	if (job)
		job->has_ended = 1;
	task->scx.slice = 0;
	return 0;
}

/* The thread leaves: its job ends, wherever it is. */
SEC("struct_ops/laxity_disable") int laxity_disable(unsigned long long *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	u32 number = number_of(task), cpu = scx_bpf_task_cpu(task);
	struct job *job = number == LAXITY_NONE ? 0 : job_of(number);

	if (!job)
		return 0;
	job->waits = 0;
	laxity_tell(ALL, LAXITY_RESUME, cpu, number, 0);
	laxity_tell(ALL, LAXITY_COMPLETE, cpu, number, 0);
	settle();
	return 0;
}

SEC("struct_ops.s/laxity_init") s32 laxity_init_scheduler(unsigned long long *context)
{
	struct laxity_cluster *it = laxity_cluster_of(ALL);
	u32 zero = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &zero);

	if (!it || !alarm)
		return -1;
	/* Nothing else runs yet. */
	if (laxity_init(&it->core, LAXITY_TASKS, cpus, rule, LAXITY_EVENT_DRIVEN))
		return -1;
	bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&alarm->timer, on_timer);
	return scx_bpf_create_dsq(OTHERS, -1);
}

struct begin {
	s32 pid;
	u32 number;
	u64 period;
	u64 deadline;
	/* Of the first job. */
	u64 release;
	u64 level;
};

/* Thread `pid` is task `number` from now on; it calls sched_yield to wait for its first job. */
SEC("syscall") int laxity_begin(struct begin *begin)
{
	u32 number = begin->number & (LAXITY_TASKS - 1), *stored;
	struct job *job = job_of(number);
	struct laxity_cluster *it = laxity_cluster_of(ALL);
	struct task_struct *task = bpf_task_from_pid(begin->pid);

	if (!task)
		return -1;
	stored = bpf_task_storage_get(&numbers, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (job && it && stored) {
		laxity_set_rank(&it->core, number, begin->level, number);
		job->pid = begin->pid;
		job->period = begin->period;
		job->deadline = begin->deadline;
		job->release = begin->release;
		job->completed = job->late = job->has_ended = 0;
		job->tardiness_max = 0;
		job->waits = 1;
		*stored = number + 1;
	}
	bpf_task_release(task);
	return job && it && stored ? 0 : -1;
}

SEC(".struct_ops") struct sched_ext_ops laxity = {
	.select_cpu = (void *)laxity_select,
	.enqueue = (void *)laxity_enqueue,
	.dequeue = (void *)laxity_dequeue,
	.dispatch = (void *)laxity_dispatch,
	.running = (void *)laxity_running,
	.stopping = (void *)laxity_stopping,
	.quiescent = (void *)laxity_quiescent,
	.yield = (void *)laxity_yield,
	.disable = (void *)laxity_disable,
	.init = (void *)laxity_init_scheduler,
	.flags = OPS_KEEP_BUILTIN_IDLE | OPS_ENQUEUE_LAST | OPS_ENQUEUE_EXITING,
	.timeout_ms = 30000,
	.name = "laxity",
};

char laxity_license[] SEC("license") = "GPL";
