/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The budget of a task: a hard constant bandwidth server, as laxity-policy's (Abeni & Buttazzo, RTSS 1998, with the hard
 * reservations of Rajkumar et al., MMCN 1998; cited from memory). Freestanding like the core: tests drive it natively beside that.
 *
 * Policy: work that comes to an idle server has the budget and the deadline that are left, unless these exceed its bandwidth:
 * then a whole budget, due a period later. A budget that is used up is followed by the next one, which may be used from the
 * deadline on, and is due a period after that. Use beyond a budget is taken from the next ones.
 * Guarantee: in any time t it uses no more than min(t, 2Q + (t - 2Q) * Q / P), but for what it takes to stop it.
 */
#ifndef LAXITY_SERVER_H
#define LAXITY_SERVER_H

#include "state.h"

struct laxity_server {
	/* CPU time in ns in each period; 0: as much as it likes. */
	laxity_u64 budget;
	/* Of the present budget; above 0. */
	laxity_u64 left;
	/* When that is due, and from when on it may be used. */
	laxity_u64 due;
	laxity_u64 from;
};

/* The upper half of a product, which has 128 bits: BPF has no instruction for that. */
LAXITY_FN laxity_u64 laxity_high(laxity_u64 x, laxity_u64 y)
{
	laxity_u64 middle = (x >> 32) * (y & 0xffffffffu) + ((x & 0xffffffffu) * (y & 0xffffffffu) >> 32);
	laxity_u64 other = (x & 0xffffffffu) * (y >> 32) + (middle & 0xffffffffu);

	return (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
}

/* Whether a * b >= c * d. */
LAXITY_FN int laxity_is_at_least(laxity_u64 a, laxity_u64 b, laxity_u64 c, laxity_u64 d)
{
	laxity_u64 left = laxity_high(a, b), right = laxity_high(c, d);

	return left > right || (left == right && a * b >= c * d);
}

/* Work comes at `now` to the idle server. */
LAXITY_SUB void laxity_server_begin(struct laxity_server *server, laxity_u64 period, laxity_u64 now)
{
	laxity_u64 rest = server->due > now ? server->due - now : 0;

	if (laxity_is_at_least(server->left, period, rest, server->budget)) {
		server->left = server->budget;
		server->due = now + period;
	}
}

/* It used that much up to `now`, within its budget or not. Whether that was used up. */
LAXITY_SUB int laxity_server_charge(struct laxity_server *server, laxity_u64 period, laxity_u64 used, laxity_u64 now)
{
	laxity_u64 excess, budgets;

	if (used < server->left) {
		server->left -= used;
		return 0;
	}
	excess = used - server->left;
	budgets = excess / server->budget;
	server->left = server->budget - (excess - budgets * server->budget);
	server->from = (server->due > now ? server->due : now) + budgets * period;
	server->due = server->from + period;
	return 1;
}

#endif
