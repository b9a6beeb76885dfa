/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What threads that are no tasks are charged: CFS's virtual time, and that of the Throttle Fair Scheduler (paper 004,
 * section IV-C). Freestanding like the core: tests drive it natively beside laxity-policy's fair class.
 *
 * Policy: V += E * 1024 / W for an execution of E (equation 1), and V += rho * lost where a CPU was throttled for `lost` because of
 * the thread (equation 2), whatever its weight. The thread of least V goes first.
 * Guarantee: V is within [clock - credit, clock + lead] when a thread begins to wait, and the clock, which is the V of the last
 * one that was chosen, shows no less than a share of the time that passed. So a thread that waits comes before all others, but for
 * those that began to wait before, within (lead + credit) * LAXITY_FAIR_PACE = 16.2 s, whatever they weigh: sooner than the kernel's watchdog looks.
 *
 * Virtual times wrap around; two of them are less than half of all numbers apart.
 */
#ifndef LAXITY_FAIR_H
#define LAXITY_FAIR_H

#include "state.h"

#define LAXITY_NICE_0_WEIGHT 1024
/* Of a thread under SCHED_IDLE. */
#define LAXITY_IDLE_WEIGHT 3
/* How far behind the clock a thread may be that slept, and how far ahead one is taken to be that had more; in ns. */
#define LAXITY_FAIR_CREDIT 5000000ull
#define LAXITY_FAIR_LEAD 500000000ull
/* In so many ns the clock advances by one at least. */
#define LAXITY_FAIR_PACE 32
/* A punishment of 1, and the most. */
#define LAXITY_PUNISHMENT_ONE 1000000ull
#define LAXITY_PUNISHMENT_MAX (100 * LAXITY_PUNISHMENT_ONE)

/* The clock of all threads that may wait for the same CPU. */
struct laxity_fair {
	laxity_u64 clock;
	/* When `clock` was brought up to the time that passed, of which that is a share. */
	laxity_u64 at;
};

/* Linux's weights of niceness -20 to 19 (sched_prio_to_weight), each 1.25 times the next. */
static const laxity_u32 laxity_weights[64] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
	3906,  3121,  2501,  1991,  1586,  1277,  1024,	 820,	655,   526,   423,  335,  272,	215,
	172,   137,   110,   87,    70,	   56,	  45,	 36,	29,    23,    18,   15,
};

/* Of niceness `nice` - 20; of what is none, that of niceness 0. */
LAXITY_FN laxity_u64 laxity_weight(laxity_u32 nice)
{
	laxity_u64 weight = laxity_weights[nice & 63];

	return weight ? weight : LAXITY_NICE_0_WEIGHT;
}

/* How much virtual time `executed`, below 2^53 ns, is to a thread of `weight`, above 0. */
LAXITY_FN laxity_u64 laxity_virtual_span(laxity_u64 executed, laxity_u64 weight)
{
	return executed * LAXITY_NICE_0_WEIGHT / weight;
}

/* What `lost`, below 2^37 ns, costs; `punishment` in millionths, at most LAXITY_PUNISHMENT_MAX. */
LAXITY_FN laxity_u64 laxity_punishment(laxity_u64 lost, laxity_u64 punishment)
{
	return lost * punishment / LAXITY_PUNISHMENT_ONE;
}

LAXITY_FN int laxity_is_before(laxity_u64 a, laxity_u64 b)
{
	return (long long)(a - b) < 0;
}

/* A thread of virtual time `chosen` is chosen at `now`. */
LAXITY_FN void laxity_fair_advance(struct laxity_fair *fair, laxity_u64 chosen, laxity_u64 now)
{
	laxity_u64 passed = now - fair->at;

	/* Another CPU may have looked a little later. */
	if ((long long)passed >= LAXITY_FAIR_PACE) {
		fair->at = now - passed % LAXITY_FAIR_PACE;
		fair->clock += passed / LAXITY_FAIR_PACE;
	}
	if (laxity_is_before(fair->clock, chosen))
		fair->clock = chosen;
}

/* Where a thread of `virtual_time` that can run now waits. */
LAXITY_FN laxity_u64 laxity_fair_place(struct laxity_fair *fair, laxity_u64 virtual_time)
{
	laxity_u64 least = fair->clock - LAXITY_FAIR_CREDIT, most = fair->clock + LAXITY_FAIR_LEAD;

	if (laxity_is_before(virtual_time, least))
		return least;
	return laxity_is_before(most, virtual_time) ? most : virtual_time;
}

#endif
