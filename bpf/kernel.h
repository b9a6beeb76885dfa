/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The little of Linux that the programs use. Members of the kernel's structures are found by their names when a program is
 * loaded (preserve_access_index), and numbers of helpers are part of the kernel's stable interface (linux/bpf.h).
 */
#ifndef LAXITY_KERNEL_H
#define LAXITY_KERNEL_H

#include "state.h"

typedef laxity_u64 u64;
typedef laxity_u32 u32;
typedef laxity_u16 u16;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define LAXITY_KERNEL __attribute__((preserve_access_index))
/* Has clang 14 describe a type that only pointers refer to; libbpf compares the types of functions that have them. */
#define LAXITY_DESCRIBE(type) __builtin_preserve_type_info(*(type *)0, 0)
#define LAXITY_GLOBAL __attribute__((noinline))
#define LAXITY_INLINE static inline __attribute__((always_inline))

/* As a map says of itself: a pointer to an array of that length, or to that type. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
/* Of linux/sched.h and linux/sched/prio.h. */
enum { SCHED_IDLE = 5, MAX_RT_PRIO = 100 };
enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	CLOCK_MONOTONIC = 1,
};

struct bpf_spin_lock {
	u32 val;
};

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

struct sched_ext_entity {
	u32 flags;
	u64 slice;
	u64 dsq_vtime;
} LAXITY_KERNEL;

struct cpumask {
	u64 bits[1];
} LAXITY_KERNEL;

struct task_struct {
	/* 0: it can run. */
	u32 __state;
	s32 pid;
	/* Not 0: it is over, but for its last steps. */
	s32 exit_state;
	/* 100 and niceness -20 make 100; of what Linux's fair class would schedule. */
	s32 static_prio;
	u32 policy;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct sched_ext_entity scx;
} LAXITY_KERNEL;

/* An enum laxity_queue_kind, which user space sets before the programs are loaded; for the verifier alone, the compiler. */
#ifndef LAXITY_QUEUE
#define LAXITY_QUEUE LAXITY_COARSE
#endif
const volatile u32 laxity_queue_kind SEC(".rodata.queue") = LAXITY_QUEUE;
/* Of each cluster as many as it has CPUs. */
struct laxity_bracket laxity_brackets[LAXITY_CPUS] SEC(".bss") = {};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static s64 (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static s64 (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static s64 (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static s64 (*const bpf_ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static s64 (*const bpf_task_storage_delete)(void *map, struct task_struct *task) = (void *)157;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static s64 (*const bpf_timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static s64 (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static s64 (*const bpf_loop)(u32 rounds, void *callback, void *context, u64 flags) = (void *)181;
static s64 (*const bpf_timer_start)(struct bpf_timer *timer, u64 at, u64 flags) = (void *)171;

#endif
