/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Ready queues that several CPUs change at once, without a lock: tournaments ("brackets") of the tasks of a cluster, in which the
 * least key wins. Paper 002, section 3: one of all tasks stands for the fine-grained heap (F); one for each CPU, below a tournament
 * of these, for the hierarchy of queues (H).
 *
 * The winners of matches 2i and 2i + 1 meet in match i; the leaves are the tasks. A match is one word: how often it was decided,
 * and its winner. After a leaf has changed, all matches from there to the final are decided anew (laxity_climb), by an exchange that
 * fails if another CPU decided the match meanwhile. It is tried twice: if both fail, the other CPU's exchange that made the second one fail
 * began after the first one had failed, so after the leaf had changed, and has seen that. So no CPU waits for another, however
 * long that one stands still, and each change takes so many steps at most (arrays with a function of all: Jayanti, PODC 2002; cited
 * from memory).
 * Guarantee: the winner of the final is the least of all jobs in the queue, those aside that are put in or taken out at this moment.
 *
 * A leaf is `at` of the task's key: an enum laxity_place, and above that how often the job was claimed, by which a CPU knows whether
 * what is in the queue is what it put there. Its rules, by which no two CPUs write one key at once:
 *
 *   OUT_INACTIVE, OUT_SUSPENDED   the job may arrive: one CPU claims it, with the lock of the links or without (-> CLAIMED, PENDING)
 *   OUT_CLAIMED                   the CPU that claimed it without the lock writes the key, and puts it in early (laxity_put_early);
 *                                 others leave the leaf alone, and an arrival of the same job under the lock comes second
 *   OUT_PENDING, IN, IN | EARLY   only with the lock; a CPU without it, which has put the job in, may still climb
 *
 * A key changes in place, while its leaf is in the queue, only under the lock, and the CPU that changes it climbs afterwards.
 */
#ifndef LAXITY_BRACKET_H
#define LAXITY_BRACKET_H

#include "heap.h"
#include "state.h"

/* Where a task is, of a queue of brackets. */
enum laxity_place {
	/* Not in the queue. Its task has no job; its job is suspended; is linked, or held back. */
	LAXITY_OUT_INACTIVE,
	LAXITY_OUT_SUSPENDED,
	LAXITY_OUT_PENDING,
	/* A CPU is about to put it in, without the lock. */
	LAXITY_OUT_CLAIMED,
	/* In bracket 0; the number of another one is added. */
	LAXITY_IN,
	/* Added where the job arrived before its arrival was applied. It is not there yet for decisions. */
	LAXITY_EARLY = 0x1000,
};

/* How often a match was decided, or a job was claimed, is above this; a winner or a place is below. */
#define LAXITY_COUNT 16
#define LAXITY_BELOW 0xffffull

/* As it is now, whatever else goes on. */
#ifdef __bpf__
#define LAXITY_READ(word) (*(volatile laxity_u64 *)&(word))
#define LAXITY_WRITE(word, value) (*(volatile laxity_u64 *)&(word) = (value))
#else
#define LAXITY_READ(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define LAXITY_WRITE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)
#endif
/* The same, and nothing that follows is read before. */
#define LAXITY_READ_FIRST(word) __sync_fetch_and_add(&(word), 0)
/* The compiler knows nothing of the number any more. */
#define LAXITY_HIDE(number) __asm__ volatile("" : "+r"(number))

/* Match `at` of a bracket, from 1. */
LAXITY_FN laxity_u64 *laxity_match_at(struct laxity_core *core, laxity_u32 bracket, laxity_u32 at)
{
#ifdef __bpf__
	return &laxity_brackets[(core->bracket + bracket) & (LAXITY_CPUS - 1)].match[at & (LAXITY_TASKS - 1)];
#else
	return &core->bracket[bracket & (LAXITY_CPUS - 1)].match[at & (LAXITY_TASKS - 1)];
#endif
}

/*
 * Without a branch, as each would double what the verifier follows in each match: all ones if `a` is less than `b`, or if `a` is 0; else
 * 0. Clang must not see what they are, or it takes branches.
 */
LAXITY_FN laxity_u64 laxity_if_less(laxity_u64 a, laxity_u64 b)
{
	laxity_u64 borrows = (~a & b) | (~(a ^ b) & (a - b));

	LAXITY_HIDE(borrows);
	return 0 - (borrows >> 63);
}

LAXITY_FN laxity_u64 laxity_if_none(laxity_u64 a)
{
	return laxity_if_less(a, 1);
}

/* The task of leaf `task`, plus 1, if it is in that bracket; else 0. */
LAXITY_FN laxity_u64 laxity_entrant(struct laxity_core *core, laxity_u32 bracket, laxity_u32 task)
{
	laxity_u64 leaf = LAXITY_READ_FIRST(laxity_key_of(&core->ready, task)->at);
	laxity_u64 differs = (leaf & LAXITY_BELOW & ~LAXITY_EARLY) ^ (LAXITY_IN + bracket);

	return ((task & (LAXITY_TASKS - 1)) + 1) & laxity_if_none(differs);
}

/* The task that wins in match `at` of a bracket, plus 1; 0: none. */
LAXITY_FN laxity_u64 laxity_winner_of(struct laxity_core *core, laxity_u32 bracket, laxity_u32 at)
{
	return LAXITY_READ(*laxity_match_at(core, bracket, at)) & LAXITY_BELOW;
}

/* Of two tasks, plus 1, the one that comes first; 0: there is none. */
LAXITY_FN laxity_u64 laxity_better(struct laxity_core *core, laxity_u64 a, laxity_u64 b)
{
	struct laxity_key *first = laxity_key_of(&core->ready, a - 1), *second = laxity_key_of(&core->ready, b - 1);
	laxity_u64 major = LAXITY_READ(first->major), other = LAXITY_READ(second->major);
	laxity_u64 is_first = laxity_if_less(major, other);

	is_first |= laxity_if_none(major ^ other) & laxity_if_less(LAXITY_READ(first->minor), LAXITY_READ(second->minor));
	is_first = (is_first & ~laxity_if_none(a)) | laxity_if_none(b);
	return b ^ ((a ^ b) & is_first);
}

/* For tests: another CPU, which looked at the match before its parts changed, is the first to write down its winner. */
#ifdef LAXITY_MUTANTS
LAXITY_FN void laxity_interfere(struct laxity_core *core, laxity_u64 *match, laxity_u64 before)
{
	if (core->interferes) {
		core->interferes--;
		__sync_val_compare_and_swap(match, before, before + LAXITY_BELOW + 1);
	}
}
#else
#define laxity_interfere(core, match, before) ((void)0)
#endif

/* Writes down the winner of a match that was `before` when its two parts were looked at; whether nothing came in between. */
LAXITY_FN int laxity_decide_match(struct laxity_core *core, laxity_u64 *match, laxity_u64 before, laxity_u64 winner)
{
	laxity_u64 after = ((before >> LAXITY_COUNT) + !LAXITY_MUTANT(core, 46)) << LAXITY_COUNT | winner;

	laxity_interfere(core, match, before);
	return __sync_val_compare_and_swap(match, before, after) == before || LAXITY_MUTANT(core, 47);
}

/* Decides match `at` of a bracket. `is_last`: between two leaves. */
LAXITY_FN void laxity_replay(struct laxity_core *core, laxity_u32 bracket, laxity_u32 at, int is_last)
{
	laxity_u64 *match = laxity_match_at(core, bracket, at);
	int round;

	for (round = 0; round < (LAXITY_MUTANT(core, 50) ? 1 : 2); round++) {
		laxity_u64 before = LAXITY_READ_FIRST(*match), first, second;

		first = is_last ? laxity_entrant(core, bracket, 2 * at) : laxity_winner_of(core, bracket, 2 * at);
		second = is_last ? laxity_entrant(core, bracket, 2 * at + 1) : laxity_winner_of(core, bracket, 2 * at + 1);
		if (laxity_decide_match(core, match, before, laxity_better(core, first, second)))
			break;
	}
}

/* The winner of match `at` among brackets, from 1; those numbered from LAXITY_CPUS on are the finals of these. */
LAXITY_FN laxity_u64 laxity_winner_among(struct laxity_core *core, laxity_u32 at)
{
	if (at >= LAXITY_CPUS)
		return laxity_winner_of(core, at & (LAXITY_CPUS - 1), 1);
	return LAXITY_READ(core->among[at & (LAXITY_CPUS - 1)]) & LAXITY_BELOW;
}

/* Decides match `at` among brackets. */
LAXITY_FN void laxity_replay_among(struct laxity_core *core, laxity_u32 at)
{
	laxity_u64 *match = &core->among[at & (LAXITY_CPUS - 1)];
	int round;

	for (round = 0; round < (LAXITY_MUTANT(core, 50) ? 1 : 2); round++) {
		laxity_u64 before = LAXITY_READ_FIRST(*match);
		laxity_u64 first = laxity_winner_among(core, 2 * at);
		laxity_u64 second = laxity_winner_among(core, 2 * at + 1);

		if (laxity_decide_match(core, match, before, laxity_better(core, first, second)))
			break;
	}
}

/* The leaf of `task`, or its key, has changed in `bracket`: all matches of that task, up to the final. */
LAXITY_SUB int laxity_climb(struct laxity_core *core, laxity_u32 bracket, laxity_u32 task)
{
	laxity_u32 at = (LAXITY_TASKS + (task & (LAXITY_TASKS - 1))) / 2, match;

	laxity_replay(core, bracket, at, 1);
	for (match = 0; match < LAXITY_LEVELS - 2; match++) {
		at /= 2;
		laxity_replay(core, bracket, at, 0);
	}
	if (LAXITY_READY(core) != LAXITY_HIERARCHICAL)
		return 0;
	at = LAXITY_CPUS + (bracket & (LAXITY_CPUS - 1));
	for (match = 0; match < LAXITY_MATCHES && at > core->final && !LAXITY_MUTANT(core, 45); match++) {
		at /= 2;
		laxity_replay_among(core, at);
	}
	return 0;
}

/* The first task of all that are in the queue, early ones among them; LAXITY_NONE. */
LAXITY_FN laxity_u32 laxity_first_in(struct laxity_core *core)
{
	laxity_u64 winner;

	if (LAXITY_READY(core) == LAXITY_HIERARCHICAL)
		winner = laxity_winner_among(core, core->final);
	else
		winner = laxity_winner_of(core, 0, 1);
	return winner ? winner - 1 : LAXITY_NONE;
}

/* What is added to LAXITY_IN in a leaf. */
LAXITY_FN laxity_u32 laxity_bracket_of(laxity_u64 leaf)
{
	return ((leaf & LAXITY_BELOW & ~LAXITY_EARLY) - LAXITY_IN) & (LAXITY_CPUS - 1);
}

/* The place that a leaf says. */
LAXITY_FN laxity_u32 laxity_place_of(laxity_u64 leaf)
{
	return leaf & LAXITY_BELOW;
}

/* The same leaf with another place. */
LAXITY_FN laxity_u64 laxity_with_place(laxity_u64 leaf, laxity_u32 place)
{
	return (leaf & ~LAXITY_BELOW) | place;
}

/* Puts `task` into a bracket, or orders it there anew, by that key. With the lock, and not claimed without it. */
LAXITY_SUB int laxity_put_in(struct laxity_core *core, laxity_u32 task, laxity_u64 major, laxity_u64 minor)
{
	struct laxity_key *key = laxity_key_of(&core->ready, task);
	laxity_u64 leaf = LAXITY_READ(key->at), differs = ~leaf & LAXITY_EARLY;
	laxity_u32 bracket = 0, home = laxity_task_at(core, task)->last_cpu & (LAXITY_CPUS - 1);

	differs |= (leaf ^ core->foreseen) & (LAXITY_MUTANT(core, 49) ? 0 : ~0ull);
	differs |= (key->major ^ major) | ((key->minor ^ minor) & (LAXITY_MUTANT(core, 43) ? 0 : ~0ull));
	LAXITY_HIDE(differs);
	/* It arrived early, by this key, and the CPU that put it in has climbed. */
	if (!differs) {
		LAXITY_WRITE(key->at, leaf & ~LAXITY_EARLY);
		return 0;
	}
	if (LAXITY_READY(core) == LAXITY_HIERARCHICAL)
		bracket = laxity_place_of(leaf) >= LAXITY_IN ? laxity_bracket_of(leaf) : home;
	LAXITY_WRITE(key->major, major);
	LAXITY_WRITE(key->minor, minor);
	__sync_lock_test_and_set(&key->at, laxity_with_place(leaf, LAXITY_IN + bracket));
	if (!LAXITY_MUTANT(core, 42))
		laxity_climb(core, bracket, task);
	return 0;
}

/* Takes `task` out of its bracket, if it is in one; its place is `to` from now on. With the lock. */
LAXITY_SUB int laxity_take_out(struct laxity_core *core, laxity_u32 task, laxity_u32 to)
{
	laxity_u64 *at = &laxity_key_of(&core->ready, task)->at;
	laxity_u64 leaf = LAXITY_READ(*at);

	/* What is claimed, perhaps at this moment, is left alone: it is put in early, and taken out by the CPU that did. */
	if (laxity_place_of(leaf) == LAXITY_OUT_CLAIMED ||
	    __sync_val_compare_and_swap(at, leaf, laxity_with_place(leaf, to)) != leaf)
		return 0;
	if (laxity_place_of(leaf) >= LAXITY_IN)
		laxity_climb(core, laxity_bracket_of(leaf), task);
	return 0;
}

/* Without the lock: claims the job of `task`, which is to arrive while its place is `from`. Returns its leaf then; 0: it could not. */
LAXITY_FN laxity_u64 laxity_claim(struct laxity_core *core, laxity_u32 task, laxity_u32 from)
{
	laxity_u64 *at = &laxity_key_of(&core->ready, task)->at;
	laxity_u64 before = LAXITY_READ(*at), after = laxity_with_place(before + LAXITY_BELOW + 1, LAXITY_OUT_CLAIMED);

	return laxity_place_of(before) == from && __sync_val_compare_and_swap(at, before, after) == before ? after : 0;
}

/* The first part of laxity_put_early: the leaf is in the bracket, and no match knows. */
LAXITY_FN laxity_u64 laxity_publish(struct laxity_core *core, laxity_u32 task, laxity_u64 claimed, laxity_u32 bracket,
				    laxity_u64 major, laxity_u64 minor)
{
	struct laxity_key *key = laxity_key_of(&core->ready, task);
	laxity_u64 leaf;

	bracket = LAXITY_READY(core) == LAXITY_HIERARCHICAL ? bracket & (LAXITY_CPUS - 1) : 0;
	leaf = laxity_with_place(claimed, (LAXITY_IN + bracket) | LAXITY_EARLY);
	LAXITY_WRITE(key->major, major);
	LAXITY_WRITE(key->minor, minor);
	__sync_lock_test_and_set(&key->at, leaf);
	return leaf;
}

/*
 * Without the lock: puts the job of `task`, which was `claimed`, into `bracket` by that key, before its arrival is applied. Returns its
 * leaf then.
 */
LAXITY_FN laxity_u64 laxity_put_early(struct laxity_core *core, laxity_u32 task, laxity_u64 claimed, laxity_u32 bracket,
				      laxity_u64 major, laxity_u64 minor)
{
	laxity_u64 leaf = laxity_publish(core, task, claimed, bracket, major, minor);

	laxity_climb(core, laxity_bracket_of(leaf), task);
	return leaf;
}

#endif
