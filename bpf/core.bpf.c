/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core as programs that user space calls (BPF_PROG_TYPE_SYSCALL): what the verifier says of it, on any kernel that has
 * BPF, and whether it decides in the kernel as it does natively. It schedules nothing, and has no quanta, whose loop takes Linux
 * 6.9.
 */
#include "happen.h"

struct call {
	u32 cluster;
	u32 rule;
	u32 cpu;
	u32 task;
	u64 number;
	u64 answer;
};

SEC("syscall") int laxity_call_begin(struct call *call)
{
	struct laxity_cluster *it = laxity_cluster_of(call->cluster);

	/* tasks, CPUs, rule and invocation. No other call may happen meanwhile. */
	return it ? laxity_init(&it->core, call->task, call->cpu, call->rule, call->number) : LAXITY_NO_SUCH;
}

SEC("syscall") int laxity_call_rank(struct call *call)
{
	struct laxity_cluster *it = laxity_cluster_of(call->cluster);

	return it ? laxity_set_rank(&it->core, call->task, call->number, call->cpu) : LAXITY_NO_SUCH;
}

SEC("syscall") int laxity_call_happen(struct laxity_note *call)
{
	struct laxity_note note = *call;
	int outcome = laxity_happen(&note);

	*call = note;
	return outcome;
}

SEC("syscall") int laxity_call_next(struct call *call)
{
	call->answer = laxity_to_run(call->cluster, call->cpu);
	return 0;
}

char laxity_license[] SEC("license") = "GPL";
