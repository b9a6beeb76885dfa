/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel prints of CPUs and threads where it ends the scheduler because of an error. Part of scheduler.bpf.c.
 */
#ifndef LAXITY_DUMP_H
#define LAXITY_DUMP_H

#include "tasks.h"

/*
 * For the dump of an error: the job that is linked to a CPU, and the process that it has. Without the lock, as what holds it may
 * be what went wrong.
 */
SEC("struct_ops/laxity_dump_cpu") int laxity_dump_cpu(unsigned long long *context)
{
	static char format[] = "laxity: local %u, linked %u, thread %d, state %u, on %u, waits %u; process %u";
	s32 cpu = (s32)context[1];
	u32 cluster = setting.cluster_of[cpu & (LAXITY_CPUS - 1)], local = setting.local_of[cpu & (LAXITY_CPUS - 1)];
	struct laxity_cluster *it = cluster == LAXITY_NONE ? 0 : laxity_cluster_of(cluster);
	unsigned long long data[7] = {};
	struct laxity_job *job;
	u32 linked;

	if (!it)
		return 0;
	linked = laxity_cpu_at(&it->core, local)->linked;
	job = linked == LAXITY_NONE ? 0 : job_of(linked);
	data[0] = local;
	data[1] = linked;
	data[2] = job ? job->pid : 0;
	data[3] = laxity_task_at(&it->core, linked)->state;
	data[4] = laxity_task_at(&it->core, linked)->on;
	data[5] = job ? job->waits : 0;
	data[6] = laxity_cpu_at(&it->core, local)->process;
	scx_bpf_dump_bstr(format, data, sizeof(data));
	return 0;
}

/* For the dump of an error: what the scheduler knows of a thread that could run. */
SEC("struct_ops/laxity_dump_task") int laxity_dump_task(unsigned long long *context)
{
	static char format[] = "laxity: task %u, waits %u, release %llu, state %u, linked_to %u, on %u, custody %u, strays %u";
	struct task_struct *task = (struct task_struct *)context[1];
	u32 number = number_of(task);
	struct laxity_job *job = number == LAXITY_NONE ? 0 : job_of(number);
	struct laxity_cluster *it = job ? laxity_cluster_of(job->cluster) : 0;
	struct laxity_task *core;
	unsigned long long data[8];

	if (!it)
		return 0;
	number &= LAXITY_TASKS - 1;
	/* Without the lock, as what holds it may be what went wrong. */
	core = laxity_task_at(&it->core, number);
	data[0] = number;
	data[1] = job->waits;
	data[2] = job->release;
	data[3] = core->state;
	data[4] = core->linked_to;
	data[5] = core->on;
	data[6] = it->custody[number];
	data[7] = job->strays;
	scx_bpf_dump_bstr(format, data, sizeof(data));
	return 0;
}

#endif
