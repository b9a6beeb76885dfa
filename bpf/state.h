/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The state of one cluster's job scheduling, in memory of fixed size.
 *
 * Freestanding C, compiled for BPF and natively: no allocation, no recursion, no pointer in the state, every loop
 * bounded by a constant, every index masked where it is used, so that the verifier of Linux knows the bounds.
 */
#ifndef LAXITY_STATE_H
#define LAXITY_STATE_H

typedef __UINT64_TYPE__ laxity_u64;
typedef __UINT32_TYPE__ laxity_u32;
typedef __UINT16_TYPE__ laxity_u16;

/* Powers of two, because indices are masked with them less one. */
#define LAXITY_TASKS 256
#define LAXITY_CPUS 64
/* Matches that a CPU plays at most in the tournament of the mapping: log2 of LAXITY_CPUS. */
#define LAXITY_MATCHES 6
/* Levels of a heap of tasks, for positions from 1 to LAXITY_TASKS. */
#define LAXITY_LEVELS 9
/* No task or no CPU. */
#define LAXITY_NONE 0xffffu
/* No time. */
#define LAXITY_NEVER (~0ull)

#define LAXITY_FN static inline __attribute__((always_inline, unused))
/* Too large to be copied to each of its callers; under a lock of BPF, a function of its own may still be called. */
#define LAXITY_SUB static __attribute__((noinline, unused))

/*
 * Where a task's job is, or an interrupt thread's work; laxity-policy, cpu/core/mod.rs, has the drawing.
 * HELD: it could run, but an interrupt thread that works on behalf of the same job goes first.
 */
enum laxity_job_state {
	LAXITY_INACTIVE,
	LAXITY_READY,
	LAXITY_LINKED,
	LAXITY_SUSPENDED,
	LAXITY_HELD,
};

/* How jobs rank; ties go to the task listed first. */
enum laxity_rule {
	/* By what the release says: the absolute deadline under EDF, any number under job-level priorities. */
	LAXITY_BY_JOB,
	/* By the level of the task: rate- or deadline-monotonic, or given. User space computes the levels. */
	LAXITY_BY_TASK,
};

/* When jobs are linked (paper 002: S1, and S2 with aligned or with staggered quanta). */
enum laxity_invocation {
	LAXITY_EVENT_DRIVEN,
	LAXITY_ALIGNED,
	LAXITY_STAGGERED,
};

/* The ready queue (paper 002: R1 to R3; see ready.h). */
enum laxity_queue_kind {
	/* A heap under the lock of the links. */
	LAXITY_COARSE,
	/* A bracket of all tasks. */
	LAXITY_FINE,
	/* One for each CPU, and one of these. */
	LAXITY_HIERARCHICAL,
};

/* An event that cannot have happened. The state is as before. */
enum laxity_error {
	/* No such task, CPU, rule or size. */
	LAXITY_NO_SUCH = -1,
	/* Jobs of a task are sequential, and so is the work of an interrupt thread. */
	LAXITY_IS_PENDING = -2,
	/* Only a suspended job resumes. */
	LAXITY_NOT_SUSPENDED = -3,
	/* Only a ready, linked or held job leaves its CPU. */
	LAXITY_NOT_PENDING = -4,
	/* A linked job is never on another CPU, and a process occupies one CPU at a time. */
	LAXITY_ELSEWHERE = -5,
	/* A second tick of a CPU before the decision. */
	LAXITY_TICKED = -6,
};

struct laxity_task {
	/* Its job's effective priority: the smaller is the more urgent. Absolute deadline in ns, or level. */
	laxity_u64 major;
	/* Breaks ties: the place in the list of all tasks of the task whose priority this is. */
	laxity_u32 tie;
	/* Its own place in the list of all tasks, those of other clusters included. */
	laxity_u32 position;
	/* Under LAXITY_BY_TASK, at least 1: level 0 is above all jobs. */
	laxity_u64 level;
	laxity_u16 state;
	/* Where it is linked; means something only in that state. */
	laxity_u16 linked_to;
	/* The CPU its process occupies, linked there or not; LAXITY_NONE. */
	laxity_u16 on;
	/* The CPU its process last occupied. */
	laxity_u16 last_cpu;
	/* Of an active interrupt thread: the task it works for. */
	laxity_u16 owner;
	/* The interrupt thread that goes before this task's job. */
	laxity_u16 occupant;
	/* Whether its process is in a non-preemptive section. */
	laxity_u16 is_non_preemptive;
	laxity_u16 unused;
};

struct laxity_cpu {
	/* The key by which it gives way: the larger first. */
	laxity_u64 key_major;
	laxity_u64 key_minor;
	/* The job that is linked to it; LAXITY_NONE. */
	laxity_u16 linked;
	/* What was linked when changes were last announced. */
	laxity_u16 announced;
	/* The task whose process occupies it. */
	laxity_u16 process;
	laxity_u16 unused;
};

/* Of a task in a heap: what it is ordered by, and its position from 1; 0: it is not there. */
struct laxity_key {
	laxity_u64 major;
	laxity_u64 minor;
	laxity_u64 at;
};

/* See bracket.h. */
struct laxity_bracket {
	laxity_u64 match[LAXITY_TASKS];
};

/* See heap.h. */
struct laxity_heap {
	struct laxity_key key[LAXITY_TASKS];
	/* By position; the first one is at 1. */
	laxity_u16 task[2 * LAXITY_TASKS];
	/* See LAXITY_FORGET. */
	laxity_u64 scratch;
	laxity_u32 count;
	laxity_u32 mutant;
};

struct laxity_core {
	struct laxity_task task[LAXITY_TASKS];
	struct laxity_cpu cpu[LAXITY_CPUS];
	/* Those whose jobs are ready and have no link, the most urgent first; of brackets only their keys. See ready.h. */
	struct laxity_heap ready;
	/* Of the matches among brackets. */
	laxity_u64 among[LAXITY_CPUS];
	/* The leaf of the job whose arrival is applied, if it was put in early; 0: it was not. */
	laxity_u64 foreseen;
#ifndef __bpf__
	struct laxity_bracket bracket[LAXITY_CPUS];
#endif
	/* Of the matches among CPUs, see mapping.h. */
	laxity_u16 winner[2 * LAXITY_CPUS];
	/* CPUs whose quantum began since the last decision, in that order. */
	laxity_u16 ticked[LAXITY_CPUS];
	laxity_u64 next_quantum;
	/* A bit a CPU: its link may have changed since changes were last announced; its quantum began. */
	laxity_u64 touched;
	laxity_u64 ticked_mask;
	/* See LAXITY_FORGET. */
	laxity_u64 scratch;
	laxity_u32 ticks;
	laxity_u32 tasks;
	laxity_u32 cpus;
	laxity_u32 rule;
	laxity_u32 invocation;
	/* Of the CPUs in `ticked`, how many have had their turn. */
	laxity_u32 first_tick;
	/* The match that decides which CPU gives way first. */
	laxity_u32 final;
#ifdef __bpf__
	/* Where its brackets begin in the list of those of all clusters. */
	laxity_u32 bracket;
#else
	laxity_u32 queue;
#endif
#ifdef LAXITY_MUTANTS
	laxity_u32 mutant;
	/* How often another CPU is to be faster, see laxity_interfere. */
	laxity_u32 interferes;
#endif
};

/* An enum laxity_queue_kind. For BPF a constant, so that the verifier takes out what belongs to others. */
#ifdef __bpf__
#define LAXITY_READY(core) laxity_queue_kind
#else
#define LAXITY_READY(core) ((core)->queue)
#endif

/*
 * Tests break one rule at a time and must notice. Only the build for tests can: elsewhere the condition is a constant.
 */
#ifdef LAXITY_MUTANTS
#define LAXITY_MUTANT(core, number) ((core)->mutant == (number))
#else
#define LAXITY_MUTANT(core, number) ((void)(core), 0)
#endif

/*
 * For the verifier: `number` comes from memory, so that nothing is known of it. It follows each path through a loop that
 * it cannot prove to be like one that it has seen, and what it knows of an index differs from round to round.
 */
#ifdef __bpf__
#define LAXITY_FORGET(core, number)                                       \
	do {                                                              \
		*(volatile laxity_u64 *)&(core)->scratch = (number);      \
		(number) = *(volatile laxity_u64 *)&(core)->scratch;      \
	} while (0)
#else
#define LAXITY_FORGET(core, number) ((void)(core), (void)(number))
#endif

/*
 * Whether a loop goes on, at most so many times that nothing goes on for ever. The verifier takes a loop with this as soon as
 * one round is like another, and does not follow all of them: instruction `may_goto` of Linux 6.9, as bytes, because clang does
 * not know it everywhere. It jumps out of the loop after some millions of rounds.
 */
#ifdef __bpf__
#define LAXITY_GOES_ON(round, most)                                                                     \
	({                                                                                              \
		__label__ ends, stays;                                                                  \
		int goes_on = 1;                                                                        \
		(void)(round);                                                                          \
		asm volatile goto("0: .byte 0xe5, 0; .long ((%l[ends] - 0b) / 8 - 1) & 0xffff; .short 0" \
				  :                                                                     \
				  :                                                                     \
				  :                                                                     \
				  : ends);                                                              \
		goto stays;                                                                             \
	ends:                                                                                           \
		goes_on = 0;                                                                            \
	stays:                                                                                          \
		goes_on;                                                                                \
	})
#else
#define LAXITY_GOES_ON(round, most) ((round)++ < (most))
#endif

/* The number of the first CPU in `cpus`, a bit each, of which there is one. BPF counts no zeros, and multiplies fast. */
LAXITY_FN laxity_u32 laxity_first_of(laxity_u64 cpus)
{
	laxity_u64 below = ~cpus & (cpus - 1);

	below -= below >> 1 & 0x5555555555555555ull;
	below = (below & 0x3333333333333333ull) + (below >> 2 & 0x3333333333333333ull);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return below * 0x0101010101010101ull >> 56;
}

LAXITY_FN struct laxity_task *laxity_task_at(struct laxity_core *core, laxity_u32 task)
{
	return &core->task[task & (LAXITY_TASKS - 1)];
}

LAXITY_FN struct laxity_cpu *laxity_cpu_at(struct laxity_core *core, laxity_u32 cpu)
{
	return &core->cpu[cpu & (LAXITY_CPUS - 1)];
}

/* What orders jobs of the same major priority: a total order, as no two are the same task. */
LAXITY_FN laxity_u64 laxity_minor_of(struct laxity_core *core, laxity_u64 tie, laxity_u32 task)
{
	if (LAXITY_MUTANT(core, 1))
		tie = 0;
	return tie << 16 | (LAXITY_MUTANT(core, 2) ? LAXITY_TASKS - task : task);
}

/* The same, of the job of `task`. */
LAXITY_FN laxity_u64 laxity_minor(struct laxity_core *core, laxity_u32 task)
{
	return laxity_minor_of(core, laxity_task_at(core, task)->tie, task);
}

#endif
