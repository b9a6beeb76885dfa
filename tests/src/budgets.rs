//! Random systems in which much happens at once, as all times are whole milliseconds: jobs of one step or several that wait before,
//! between and after them, and servers whose budgets these use up exactly.

use std::fmt::Write;

use laxity_model::Workload;
use laxity_model::rng::SplitMix64;

use crate::systems::pick;

/// A system of servers from `seed`, and the file that it is of; `None` if that asks for what no scheduler could do.
pub fn exhausting(seed: u64) -> Option<(Workload, String)> {
    system(seed, true)
}

/// The same without servers.
pub fn coinciding(seed: u64) -> Option<(Workload, String)> {
    system(seed, false)
}

fn system(seed: u64, has_servers: bool) -> Option<(Workload, String)> {
    let rng = &mut SplitMix64::new(!seed);
    let (scheduler, cpus) = pick(rng, &[("P-RM", 1), ("P-DM", 1), ("P-EDF", 1), ("G-EDF", 2), ("G-RM", 2)]);
    let mut text =
        format!("laxity = 1\nname = \"exhausting\"\nscheduler = \"{scheduler}\"\n[platform]\ncpus = {cpus}\n");
    let has_gpu = rng.below(4) == 0;
    if has_gpu {
        text += "[[platform.gpu]]\nname = \"gpu\"\nbandwidth = \"12 GB/s\"\n";
    }
    if rng.below(3) == 0 {
        text += "[gpu_management]\narbitration = \"semaphore\"\n";
    }
    text += "[[resource]]\nname = \"r\"\n";
    let in_graph = rng.below(8) == 0;
    let tasks = rng.between(1, 4);
    for index in 0..tasks {
        let fields = task(rng, has_gpu, tasks, has_servers);
        if in_graph && index == 0 {
            text += "[[graph]]\nname = \"g\"\nedge = [\"a -> b\"]\n";
            let period = pick(rng, &[10, 20, 40]);
            write!(text, "[[graph.node]]\nname = \"a\"\nperiod = \"{period} ms\"\n{}", fields.of_period(rng, period))
                .expect("a string");
            text += "[[graph.node]]\nname = \"b\"\nwcet = \"1 ms\"\n";
            continue;
        }
        let period = pick(rng, &[8, 10, 12, 20, 40]);
        write!(text, "[[task]]\nname = \"t{index}\"\nperiod = \"{period} ms\"\n{}", fields.of_period(rng, period))
            .expect("a string");
    }
    let workload = Workload::from_toml(&text, "exhausting.toml").ok()?;
    Some((workload, text))
}

/// A task but for its period.
struct Fields {
    body: Vec<String>,
    wcet: u64,
    /// The budget, if it is a server.
    budget: Option<u64>,
}

fn task(rng: &mut SplitMix64, has_gpu: bool, tasks: u64, has_servers: bool) -> Fields {
    let budget = rng.between(1, 8 / tasks + 1);
    let budgets = pick(rng, &[1, 1, 1, 2, 3]);
    let mut left = match rng.below(5) {
        // Less than that, so that a part of the last budget is left.
        0 => (budget * budgets - 1).max(1),
        _ => budget * budgets,
    };
    let wcet = left;
    let mut body = Vec::new();
    let is_plain = rng.below(3) == 0;
    while left > 0 {
        let part = if rng.below(2) == 0 { left } else { rng.between(1, left) };
        left -= part;
        let shorter = rng.between(1, part);
        body.push(match rng.below(if is_plain { 4 } else { 6 }) {
            0 => format!("{{ cpu = \"{part} ms\", actual = {{ uniform = [\"{shorter} ms\", \"{part} ms\"] }} }}"),
            4 => format!("{{ nonpreemptive = \"{part} ms\" }}"),
            5 => format!("{{ critical = \"r\", body = [{{ cpu = \"{part} ms\" }}] }}"),
            _ => format!("{{ cpu = \"{part} ms\" }}"),
        });
        let is_last = left == 0;
        if !is_plain && rng.below(if is_last { 2 } else { 3 }) == 0 {
            body.push(wait(rng, has_gpu));
        }
    }
    Fields { body, wcet, budget: (rng.below(5) > 0 && has_servers).then_some(budget) }
}

/// A step that needs no CPU time.
fn wait(rng: &mut SplitMix64, has_gpu: bool) -> String {
    let kernel = if rng.below(2) == 0 { "{ kernel = \"1 ms\" }" } else { "{ kernel = \"1 ms\", asynchronous = true }" };
    match rng.below(4) {
        0 => "{ critical = \"r\", body = [{ suspend = \"1 ms\" }] }".to_owned(),
        1 if has_gpu => kernel.to_owned(),
        _ => format!("{{ suspend = \"{} ms\" }}", rng.between(1, 2)),
    }
}

impl Fields {
    /// The rest of the table of a task of `period`, in milliseconds.
    fn of_period(&self, rng: &mut SplitMix64, period: u64) -> String {
        let shortest = self.wcet.min(period);
        let deadline = match rng.below(4) {
            0 => rng.between(shortest, period),
            1 => rng.between(period, 2 * period),
            _ => period,
        };
        let mut text = format!("deadline = \"{deadline} ms\"\nbody = [{}]\n", self.body.join(", "));
        if let Some(budget) = self.budget.map(|budget| budget.min(period)) {
            let kind = pick(rng, &["cbs_hard", "cbs_hard", "sporadic", "cbs_soft"]);
            let whole = self.wcet.div_ceil(budget);
            let own = match rng.below(4) {
                0 => Some(period / whole),
                1 => Some(period / (whole + 1)),
                2 => Some(rng.between(budget, period.max(budget))),
                _ => None,
            };
            let own = own.filter(|&own| own >= budget).map_or(String::new(), |own| format!(", period = \"{own} ms\""));
            writeln!(text, "server = {{ kind = \"{kind}\", budget = \"{budget} ms\"{own} }}").expect("a string");
        }
        text
    }
}
