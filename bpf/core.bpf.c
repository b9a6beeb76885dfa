/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core as programs that user space calls (BPF_PROG_TYPE_SYSCALL): what the verifier says of it, on any kernel that has
 * BPF, and whether it decides in the kernel as it does natively. It schedules nothing.
 */
#include "events.h"

struct call {
	u32 cluster;
	u32 event;
	u32 cpu;
	u32 task;
	u64 number;
	u64 answer;
};

SEC("syscall") int laxity_call_begin(struct call *call)
{
	struct laxity_cluster *it = laxity_cluster_of(call->cluster);

	/* tasks, CPUs, rule and invocation. No other call may happen meanwhile. */
	return it ? laxity_init(&it->core, call->task, call->cpu, call->event, call->number) : LAXITY_NO_SUCH;
}

SEC("syscall") int laxity_call_rank(struct call *call)
{
	struct laxity_cluster *it = laxity_cluster_of(call->cluster);

	return it ? laxity_set_rank(&it->core, call->task, call->number, call->cpu) : LAXITY_NO_SUCH;
}

SEC("syscall") int laxity_call_tell(struct call *call)
{
	return laxity_tell(call->cluster, call->event, call->cpu, call->task, call->number);
}

SEC("syscall") int laxity_call_priority(struct call *call)
{
	return laxity_tell_priority(call->cluster, call->task, call->number, call->cpu);
}

SEC("syscall") int laxity_call_work(struct call *call)
{
	return laxity_tell_work(call->cluster, call->task, call->event, call->number, call->cpu);
}

SEC("syscall") int laxity_call_settle(struct call *call)
{
	call->answer = laxity_settle(call->cluster);
	return 0;
}

SEC("syscall") int laxity_call_next(struct call *call)
{
	call->answer = laxity_to_run(call->cluster, call->cpu);
	return 0;
}

char laxity_license[] SEC("license") = "GPL";
