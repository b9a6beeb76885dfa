/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long the locks of a cluster are held, where that is asked for: laxity_holds_are_timed is a constant when the programs are
 * loaded, and the verifier takes all of this out where it is 0.
 *
 * A program cannot look at the clock while it has a lock. So what is taken is the time from just before it asks for the lock
 * until it has given it back: where no other CPU waits for it, that is how long it has it, and two calls. These times are kept
 * until measure.h writes them down; it says when they are taken, as looking at the clock makes longer whatever goes on around.
 */
#ifndef LAXITY_HOLD_H
#define LAXITY_HOLD_H

#include "kernel.h"

enum laxity_lock {
	/* Of links and ready queue. */
	LOCK_LINKS,
	/* Of the tasks that wait for a time. */
	LOCK_TIMES,
	/* None: a job that arrives is put into a queue of brackets before it waits for the first. */
	LOCK_NOT,
};

/* Times that are kept; what comes after them is not. */
#define LAXITY_HELD 16

struct laxity_held {
	u32 span;
	u32 lock;
};

/* Of a CPU. Programs that use this while times are taken do not interrupt each other, and no hold is within another. */
struct laxity_holds {
	/*
	 * When a lock was asked for. Not a variable of the program that asks: the verifier would follow what it does with the lock twice, with
	 * a time and without one.
	 */
	u64 asked;
	u32 is_timed;
	u32 count;
	struct laxity_held held[LAXITY_HELD];
};

const volatile u32 laxity_holds_are_timed SEC(".rodata.hold") = 0;
struct laxity_holds laxity_holds[LAXITY_CPUS] SEC(".data.hold") = {};

LAXITY_INLINE struct laxity_holds *laxity_holds_here(void)
{
	return &laxity_holds[bpf_get_smp_processor_id() & (LAXITY_CPUS - 1)];
}

/* A lock is asked for. */
LAXITY_INLINE void laxity_ask(void)
{
	if (laxity_holds_are_timed && laxity_holds_here()->is_timed)
		laxity_holds_here()->asked = bpf_ktime_get_ns();
}

/* It was given back. */
LAXITY_INLINE void laxity_gave_back(u32 lock)
{
	struct laxity_holds *it;
	u32 at;

	if (!laxity_holds_are_timed)
		return;
	it = laxity_holds_here();
	at = it->count;
	if (!it->is_timed)
		return;
	if (at < LAXITY_HELD) {
		it->held[at & (LAXITY_HELD - 1)] = (struct laxity_held){ .span = bpf_ktime_get_ns() - it->asked, .lock = lock };
		it->count = at + 1;
	}
}

#endif
