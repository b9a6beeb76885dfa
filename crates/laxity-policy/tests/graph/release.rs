//! When jobs are released and when they may run.

use laxity_model::{Edge, Instant, Nanos};
use laxity_policy::graph::{Action, CompiledGraph, Event, Releasing, Tokens};

use crate::drawing::assert_drawn;
use crate::driver::{Length, Run, back, graph, rated, run, run_late, unit};

fn plan(periods: &[Option<u64>], edges: Vec<Edge>) -> CompiledGraph {
    CompiledGraph::new(&graph(periods, edges)).expect("a sound graph")
}

fn execute(plan: CompiledGraph, releasing: Releasing, lengths: &[u64], horizon: u64) -> Run {
    run(Tokens::new(plan, releasing), &Length::Execution(lengths.to_vec()), horizon)
}

fn times(run: &Run, node: usize) -> Vec<(u64, u64)> {
    run.of(node).map(|job| (job.arrival, job.deadline)).collect()
}

/// Paper 003, section 5.1: a job waits until there are tokens on all its inbound edges.
#[test]
fn a_job_is_released_by_the_last_of_its_tokens() {
    let diamond = plan(&[Some(10), None, None, None], vec![unit(0, 1), unit(0, 2), unit(1, 3), unit(2, 3)]);
    let run = execute(diamond, Releasing::Early, &[2, 1, 4, 1], 20);
    assert_drawn(
        &run,
        &[
            "##........##........",
            "..#.........#.......",
            "..####......####....",
            "......#.........#...", //
        ],
    );
    assert_eq!(times(&run, 3), [(6, 16), (16, 26)]);
}

/// `r = max(r_prev + p, last token)`, Liu & Anderson, RTSS 2010: tokens that come in a burst do not make jobs
/// that arrive in a burst; early releasing lets them run in one (paper 003, section 5.2.3).
#[test]
fn jobs_may_run_early_with_the_deadlines_of_their_arrivals() {
    // Three tokens every 12: b has the period 4.
    let burst = || plan(&[Some(12), None], vec![rated(0, 1, 3, 1)]);
    let early = execute(burst(), Releasing::Early, &[2, 2], 15);
    assert_drawn(
        &early,
        &[
            "##..........##.", //
            "..######......#",
        ],
    );
    let on_time = execute(burst(), Releasing::OnTime, &[2, 2], 15);
    assert_drawn(
        &on_time,
        &[
            "##..........##.", //
            "..##..##..##..#",
        ],
    );
    let arrivals_and_deadlines = [(2, 6), (6, 10), (10, 14), (14, 18)];
    assert_eq!(times(&early, 1), arrivals_and_deadlines);
    assert_eq!(times(&on_time, 1), arrivals_and_deadlines);
}

/// Sources are released by time alone, whatever the mode.
#[test]
fn a_source_never_runs_before_its_time() {
    let alone = plan(&[Some(4)], vec![]);
    assert_drawn(&execute(alone, Releasing::Early, &[1], 10), &["#...#...#."]);
}

/// The tokens of job 1 come at 14, after r_prev + p = 12: its deadline is counted from 14.
#[test]
fn a_late_token_moves_the_deadline() {
    let chain = plan(&[Some(10), None], vec![unit(0, 1)]);
    let mut tokens = Tokens::new(chain, Releasing::Early);
    let mut actions = Vec::new();
    let arrived = |at| Event::Arrived { node: 0, at: Instant(at) };
    for (now, event) in [
        (0, arrived(0)),
        (2, Event::Completed { node: 0 }),
        (3, Event::Completed { node: 1 }),
        (10, arrived(10)),
        (14, Event::Completed { node: 0 }),
    ] {
        tokens.handle(Instant(now), event, &mut actions);
    }
    let released: Vec<Action> =
        actions.into_iter().filter(|it| matches!(it, Action::Released { node: 1, .. })).collect();
    let released_at = |index, at| Action::Released { node: 1, index, arrival: Instant(at), deadline: Instant(at + 10) };
    assert_eq!(released, [released_at(0, 2), released_at(1, 14)]);
}

/// Nodes are single threads: job 1 of b is released at 12, and waits for job 0.
#[test]
fn jobs_of_a_node_never_overlap() {
    let chain = plan(&[Some(10), None], vec![unit(0, 1)]);
    let run = execute(chain, Releasing::Early, &[2, 13], 30);
    assert_drawn(
        &run,
        &[
            "##........##........##........", //
            "..############################",
        ],
    );
    let released: Vec<u64> = run.of(1).map(|job| job.released).collect();
    let ready: Vec<u64> = run.of(1).filter_map(|job| job.ready).collect();
    assert_eq!((released, ready), (vec![2, 12, 22], vec![2, 15, 28]));
}

/// Threshold 4, consume 2: job j needs 4 + 2(j - 1) tokens, so two stay behind.
#[test]
fn a_threshold_above_what_is_consumed_keeps_a_history() {
    let edge = Edge { threshold: 4, ..rated(0, 1, 1, 2) };
    let run = execute(plan(&[Some(2), None], vec![edge]), Releasing::Early, &[1, 1], 14);
    assert_drawn(
        &run,
        &[
            "#.#.#.#.#.#.#.", //
            ".......#...#..",
        ],
    );
    assert_eq!(run.tokens.tokens(0), 7 - 2 * 2);
}

/// Initial tokens are there from the start, and as many as there are, jobs are announced one at a time.
#[test]
fn a_billion_initial_tokens_release_no_burst() {
    let edge = Edge { initial: 1_000_000_000, ..unit(0, 1) };
    let run = execute(plan(&[Some(5), None], vec![edge.clone()]), Releasing::OnTime, &[1, 1], 12);
    assert_drawn(
        &run,
        &[
            "#....#....#.", //
            "#....#....#.",
        ],
    );
    let mut idle = Tokens::new(plan(&[Some(5), None], vec![edge]), Releasing::Early);
    let mut actions = Vec::new();
    idle.handle(Instant::ZERO, Event::Started, &mut actions);
    assert_eq!(actions.len(), 3, "released, consumed, ready: {actions:?}");
}

/// One token on the back-edge: a starts only when b has completed, and being throttled it stays a period apart.
#[test]
fn a_source_waits_for_the_tokens_of_its_back_edge() {
    let looped = plan(&[Some(4), None], vec![unit(0, 1), back(1, 0, 1)]);
    let run = execute(looped, Releasing::Early, &[3, 3], 18);
    assert_drawn(
        &run,
        &[
            "###...###...###...", //
            "...###...###...###",
        ],
    );
    assert_eq!(times(&run, 0), [(0, 4), (6, 10), (12, 16)]);
}

/// Paper 003, Fig. 5.5.
#[test]
fn a_job_consumes_tokens_then_feedback_and_produces_feedback_then_tokens() {
    let chain = graph(&[Some(10), None, None], vec![unit(0, 1), unit(1, 2)]);
    let plan = CompiledGraph::pipelined(&chain, &[vec![0, 1, 2]], 1).expect("a sound graph");
    let run = execute(plan, Releasing::Early, &[1, 1, 1], 10);
    let (arrival, deadline) = (Instant(1), Instant(11));
    let expected = [
        Action::Released { node: 1, index: 0, arrival, deadline },
        Action::Consumed { node: 1, index: 0, edge: 0, tokens: 1 },
        Action::Consumed { node: 1, index: 0, edge: 3, tokens: 1 },
        Action::Ready { node: 1, index: 0 },
        Action::Produced { node: 1, index: 0, edge: 2, tokens: 1 },
        Action::Produced { node: 1, index: 0, edge: 1, tokens: 1 },
    ];
    let of_b = |action: &Action| match *action {
        Action::Released { node, .. }
        | Action::Consumed { node, .. }
        | Action::Ready { node, .. }
        | Action::Produced { node, .. } => node == 1,
    };
    let actions: Vec<Action> = run.actions.iter().map(|it| it.1).filter(of_b).collect();
    assert_eq!(actions, expected);
}

/// Paper 003, section 5.4.1, footnote 13: with one replica job 1 of a waits for job 0 of b until 9, and keeps its
/// deadline.
#[test]
fn a_wait_for_feedback_moves_no_deadline() {
    let chain = graph(&[Some(6), None], vec![unit(0, 1)]);
    let plan = CompiledGraph::pipelined(&chain, &[vec![0, 1]], 1).expect("a sound graph");
    let run = execute(plan, Releasing::Early, &[2, 7], 14);
    assert_drawn(
        &run,
        &[
            "##....:::##.::", //
            "..#######..###",
        ],
    );
    assert_eq!(times(&run, 0), [(0, 6), (6, 12), (12, 18)]);
}

/// b runs seven jobs in 40 ns, and 40/7 is no whole number: its arrivals are the exact ones, rounded down.
#[test]
fn periods_that_are_no_whole_number_do_not_drift() {
    let edge = Edge { initial: 1_000_000, ..rated(0, 1, 7, 4) };
    let run = execute(plan(&[Some(10), None], vec![edge]), Releasing::OnTime, &[1, 1], 400);
    let arrivals: Vec<u64> = run.of(1).map(|job| job.arrival).collect();
    let expected: Vec<u64> = (0..arrivals.len() as u64).map(|job| job * 40 / 7).collect();
    assert_eq!(arrivals.len(), 70);
    assert_eq!(arrivals, expected);
}

/// A timer that fires late postpones the announcement of a job, but neither arrivals nor deadlines.
#[test]
fn late_timeouts_change_no_arrival() {
    let burst = || plan(&[Some(12), None, None], vec![rated(0, 1, 3, 1), rated(1, 2, 1, 3)]);
    for releasing in [Releasing::Early, Releasing::OnTime] {
        let lengths = Length::Response(vec![2, 9, 5]);
        let punctual = run(Tokens::new(burst(), releasing), &lengths, 200);
        let late = run_late(Tokens::new(burst(), releasing), &lengths, 200, 5);
        for node in 0..3 {
            let pairs: Vec<_> = times(&punctual, node).into_iter().zip(times(&late, node)).collect();
            assert!(pairs.len() > 12, "{}", pairs.len());
            assert!(pairs.iter().all(|(punctual, late)| punctual == late), "{pairs:?}");
        }
    }
}

#[test]
fn a_node_has_the_deadline_it_asks_for_or_its_period() {
    let mut graph = graph(&[Some(6), None, None], vec![rated(0, 1, 1, 2), unit(0, 2)]);
    graph.nodes[2].deadline = Some(Nanos(5));
    graph.nodes[0].phase = Nanos(3);
    let plan = CompiledGraph::new(&graph).expect("a sound graph");
    let deadlines: Vec<u64> = plan.nodes().iter().map(|node| node.deadline.0).collect();
    assert_eq!(deadlines, [6, 12, 5]);
    assert_eq!(times(&execute(plan, Releasing::Early, &[1, 1, 1], 9), 2), [(4, 9)]);
}

/// Feeds `events` to `tokens` and returns when the jobs of `node` were released, and with which arrival.
fn released(tokens: &mut Tokens, node: usize, events: &[(u64, Event)]) -> Vec<(u64, u64)> {
    let (mut actions, mut released) = (Vec::new(), Vec::new());
    for &(now, event) in events {
        tokens.handle(Instant(now), event, &mut actions);
        for action in actions.drain(..) {
            if let Action::Released { node: of, arrival, .. } = action
                && of == node
            {
                released.push((now, arrival.0));
            }
        }
    }
    released
}

/// Throttled until 6, a source is next released a period after that, at 10, though its time came at 8 and the token is
/// there: only other nodes are released early.
#[test]
fn a_source_that_was_throttled_stays_a_period_apart() {
    let looped = plan(&[Some(4), None], vec![unit(0, 1), back(1, 0, 1)]);
    let mut tokens = Tokens::new(looped, Releasing::Early);
    let (arrived, completed) = (|at| Event::Arrived { node: 0, at: Instant(at) }, |node| Event::Completed { node });
    let events = [
        (0, arrived(0)),
        (1, completed(0)),
        (4, arrived(4)),
        (6, completed(1)),
        (7, completed(0)),
        (7, completed(1)),
        (8, arrived(8)),
    ];
    assert_eq!(released(&mut tokens, 0, &events), [(0, 0), (6, 6)]);
    assert_eq!(tokens.next_timeout(), Some(Instant(10)));
}

/// The interrupt that releases a source may be late; the job's deadline is not.
#[test]
fn an_arrival_noticed_late_counts_from_when_it_happened() {
    let mut tokens = Tokens::new(plan(&[Some(4)], vec![]), Releasing::Early);
    assert_eq!(released(&mut tokens, 0, &[(3, Event::Arrived { node: 0, at: Instant(1) })]), [(3, 1)]);
}

/// Job 1 of b waits for its arrival at 4 while job 0 runs, and is released early at 1; then nothing is left to wait
/// for.
#[test]
fn a_job_released_early_needs_no_timeout() {
    let mut tokens = Tokens::new(plan(&[Some(8), None], vec![rated(0, 1, 2, 1)]), Releasing::Early);
    let mut events = vec![(0, Event::Arrived { node: 0, at: Instant(0) }), (0, Event::Completed { node: 0 })];
    assert_eq!(released(&mut tokens, 1, &events), [(0, 0)]);
    assert_eq!(tokens.next_timeout(), Some(Instant(4)));
    events = vec![(1, Event::Completed { node: 1 })];
    assert_eq!(released(&mut tokens, 1, &events), [(1, 4)]);
    assert_eq!(tokens.next_timeout(), None);
}

#[test]
#[should_panic(expected = "only the ready job of a node completes")]
fn a_job_that_was_not_ready_cannot_complete() {
    let mut tokens = Tokens::new(plan(&[Some(5)], vec![]), Releasing::Early);
    tokens.handle(Instant::ZERO, Event::Completed { node: 0 }, &mut Vec::new());
}
