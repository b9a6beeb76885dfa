/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Which job is linked to which CPU, and which CPU gives way first: a tournament of CPUs, as in laxity-policy.
 *
 * The winners of matches 2i and 2i + 1 meet in match i. The second half of the array are the CPUs. Of 64 CPUs match 1 is the
 * final; of fewer it is the first one in which all of them have played.
 * The larger key wins, and the first where both are equal. CPUs that do not exist have the least key.
 */
#ifndef LAXITY_MAPPING_H
#define LAXITY_MAPPING_H

#include "state.h"

#define LAXITY_MATCH_MASK (2 * LAXITY_CPUS - 1)

/* Decides match `at`. */
LAXITY_FN void laxity_play(struct laxity_core *core, laxity_u32 at)
{
	laxity_u32 first = core->winner[(2 * at) & LAXITY_MATCH_MASK];
	laxity_u32 second = core->winner[(2 * at + 1) & LAXITY_MATCH_MASK];
	struct laxity_cpu *a = laxity_cpu_at(core, first), *b = laxity_cpu_at(core, second);

	if (a->key_major < b->key_major || (a->key_major == b->key_major && a->key_minor < b->key_minor))
		first = second;
	core->winner[at & LAXITY_MATCH_MASK] = first;
}

/* Links the job of `task`, or none, to `cpu`: its new key, and the matches that it plays. */
LAXITY_SUB int laxity_map(struct laxity_core *core, laxity_u32 cpu, laxity_u32 task)
{
	struct laxity_cpu *slot = laxity_cpu_at(core, cpu);
	laxity_u32 at = LAXITY_CPUS + (cpu & (LAXITY_CPUS - 1));
	int match;

	slot->linked = task;
	if (task == LAXITY_NONE) {
		/* Above the keys of all jobs, whose minor part ends with 16 bits that tell tasks apart. */
		slot->key_major = ~0ull;
		slot->key_minor = LAXITY_MUTANT(core, 5) ? ~0ull - LAXITY_CPUS + cpu : ~0ull - cpu;
	} else {
		struct laxity_task *job = laxity_task_at(core, task);

		slot->key_major = job->major;
		slot->key_minor = laxity_minor(core, task);
	}
	for (match = 0; match < LAXITY_MATCHES && at > core->final; match++) {
		at /= 2;
		laxity_play(core, at);
	}
	return 0;
}

/* The CPU that gives way first: of the idle ones the smallest number, else the one with the least urgent job. */
LAXITY_FN laxity_u32 laxity_lowest(struct laxity_core *core)
{
	return core->winner[core->final & LAXITY_MATCH_MASK];
}

#endif
