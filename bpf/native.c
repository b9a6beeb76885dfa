/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The core as a native library, for tests that drive it beside laxity-policy. LAXITY_PREFIX tells the builds apart: with
 * LAXITY_MUTANTS one can break a rule.
 */
#include "dispatch.h"
#include "fair.h"
#include "heap.h"
#include "policy.h"
#include "ready.h"
#include "server.h"

#define PASTE(prefix, name) prefix##name
#define JOIN(prefix, name) PASTE(prefix, name)
#define NATIVE(name) JOIN(LAXITY_PREFIX, name)

typedef struct laxity_core core;
typedef laxity_u32 u32;
typedef laxity_u64 u64;

/* clang-format off */
u64 NATIVE(size)(void) { return sizeof(core); }

int NATIVE(init)(core *c, u32 tasks, u32 cpus, u32 rule, u32 invocation, u32 queue, u32 mutant)
{
	if (queue > LAXITY_HIERARCHICAL)
		return LAXITY_NO_SUCH;
	c->queue = queue;
#ifdef LAXITY_MUTANTS
	c->mutant = c->ready.mutant = mutant;
#else
	(void)mutant;
#endif
	return laxity_init(c, tasks, cpus, rule, invocation);
}

int NATIVE(set_rank)(core *c, u32 task, u64 level, u32 position) { return laxity_set_rank(c, task, level, position); }
int NATIVE(release)(core *c, u32 task, u64 major) { return laxity_release(c, task, major); }
int NATIVE(complete)(core *c, u32 cpu, u32 task) { return laxity_complete(c, cpu, task); }
int NATIVE(suspend)(core *c, u32 cpu, u32 task) { return laxity_suspend(c, cpu, task); }
int NATIVE(resume)(core *c, u32 task) { return laxity_resume(c, task); }
int NATIVE(prioritize)(core *c, u32 task, u64 major, u32 tie) { return laxity_prioritize(c, task, major, tie); }
int NATIVE(lead)(core *c, u32 owner, u64 major, u32 tie) { return laxity_lead(c, owner, major, tie); }
int NATIVE(wake)(core *c, u32 thread, u32 owner, u64 major, u32 tie) { return laxity_wake(c, thread, owner, major, tie); }
int NATIVE(tick)(core *c, u32 cpu, u64 quantum) { return laxity_tick(c, cpu, quantum); }
int NATIVE(switch)(core *c, u32 cpu, u32 task) { return laxity_switch(c, cpu, task); }
int NATIVE(enter)(core *c, u32 task) { return laxity_enter(c, task); }
int NATIVE(exit)(core *c, u32 task) { return laxity_exit(c, task); }
u64 NATIVE(decide)(core *c) { laxity_decide(c); return laxity_announce(c); }
/* What happen.h does after an event that is no tick. */
u64 NATIVE(round)(core *c) { laxity_decide_round(c); return laxity_announce(c); }
u64 NATIVE(kicks)(core *c, u64 changed) { return laxity_kicks(c, changed); }
u32 NATIVE(next)(core *c, u32 cpu) { return laxity_next(c, cpu); }
u32 NATIVE(linked)(core *c, u32 cpu) { return laxity_cpu_at(c, cpu)->linked; }
u64 NATIVE(claim)(core *c, u32 task, u32 from) { return laxity_claim(c, task, from); }
u64 NATIVE(put_early)(core *c, u32 task, u64 claimed, u32 cpu, u64 major, u32 tie) { return laxity_put_early(c, task, claimed, cpu, major, laxity_minor_of(c, tie, task)); }
u64 NATIVE(arrive_early)(core *c, u32 task, u32 from, u32 cpu, u64 major, u32 tie) { return laxity_arrive_early(c, task, from, cpu, major, tie); }
u64 NATIVE(publish)(core *c, u32 task, u64 claimed, u32 cpu, u64 major, u32 tie) { return laxity_publish(c, task, claimed, cpu, major, laxity_minor_of(c, tie, task)); }
/* Whether the winner of a match is written down that another CPU has decided since it was looked at. */
int NATIVE(overtakes)(core *c, u32 bracket, u32 at)
{
	u64 *match = laxity_match_at(c, bracket, at), before = LAXITY_READ_FIRST(*match);

	laxity_replay(c, bracket, at, at >= LAXITY_TASKS / 2);
	return laxity_decide_match(c, match, before, before & LAXITY_BELOW);
}

/* In so many matches that are decided next another CPU is faster: of the build for tests. */
void NATIVE(interfere)(core *c, u32 matches)
{
#ifdef LAXITY_MUTANTS
	c->interferes = matches;
#else
	(void)c, (void)matches;
#endif
}

void NATIVE(expect)(core *c, u64 leaf) { laxity_expect(c, leaf); }
void NATIVE(end_early)(core *c, u32 task) { laxity_end_early(c, task); }
u32 NATIVE(first)(core *c) { return laxity_ready_first(c); }
u64 NATIVE(times_size)(void) { return sizeof(struct laxity_heap); }
void NATIVE(times_set)(struct laxity_heap *h, u32 task, u64 time, u32 keeps) { laxity_heap_set(h, task, time, keeps); }
u64 NATIVE(times_first)(struct laxity_heap *h) { return laxity_heap_time(h); }
u32 NATIVE(times_take)(struct laxity_heap *h, u64 now) { return laxity_heap_take(h, now); }
void NATIVE(server_begin)(struct laxity_server *s, u64 period, u64 now) { laxity_server_begin(s, period, now); }
u64 NATIVE(fair_weight)(u32 nice) { return laxity_weight(nice); }
u64 NATIVE(fair_span)(u64 executed, u64 weight) { return laxity_virtual_span(executed, weight); }
u64 NATIVE(fair_punishment)(u64 lost, u64 punishment) { return laxity_punishment(lost, punishment); }
void NATIVE(fair_advance)(struct laxity_fair *f, u64 chosen, u64 now) { laxity_fair_advance(f, chosen, now); }
u64 NATIVE(fair_place)(struct laxity_fair *f, u64 virtual_time) { return laxity_fair_place(f, virtual_time); }
int NATIVE(server_charge)(struct laxity_server *s, u64 period, u64 used, u64 now) { return laxity_server_charge(s, period, used, now); }
/* clang-format on */
