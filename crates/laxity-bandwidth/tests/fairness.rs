//! A memory-bound and a computing program that share a regulated CPU: what each has of it under Linux's fair class alone,
//! and with the Throttle Fair Scheduler on top (paper 004, section IV-C and Fig. 6).

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use laxity_bandwidth::{Counter, Options, Throttle};
use laxity_gpu::{Base, Registry};
use laxity_measure::memory::{Pattern, Stream};
use laxity_sys::clock::now;
use laxity_sys::fairness::usage;
use laxity_sys::scheduling;
use laxity_testing::{Late, Process, on_a_calm_machine, role, until};
use support::{Place, alone, create, last_cpu, regulator};

/// Not a test by itself: the two programs.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    match role.as_str() {
        "memory" => {
            let arbitration = Registry::at(&place).attach("g").expect("it was created");
            let mut stream = Stream::new(Pattern::Write, 32 << 20);
            let mut bytes = 0u64;
            let mut told = now();
            let this = scheduling::current_thread();
            fs::write(place.join("memory"), this.to_string()).expect("it is writable");
            loop {
                let chunk = stream.step();
                bytes += chunk;
                arbitration.count_traffic(chunk);
                if now() > told.saturating_add(laxity_model::Nanos::from_millis(20)) {
                    told = now();
                    std::hint::black_box(bytes);
                }
            }
        }
        "compute" => {
            fs::write(place.join("compute"), scheduling::current_thread().to_string()).expect("it is writable");
            let mut number = 1u64;
            loop {
                number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        }
        _ => panic!("no such role: {role}"),
    }
}

/// What the two had of the CPU: the time of the memory-bound program with that for which it was throttled, and the
/// other's.
struct Shares {
    memory: f64,
    throttled: f64,
    compute: f64,
}

impl Shares {
    /// The part of the core that the computing program left.
    fn of_memory(&self) -> f64 {
        (self.memory + self.throttled) / (self.memory + self.throttled + self.compute)
    }

    /// The part of a throttled period in which the memory-bound program runs.
    fn beta(&self) -> f64 {
        self.memory / (self.memory + self.throttled)
    }
}

fn shares(punishment: Option<f64>, span: Duration) -> Option<Shares> {
    let place = Place::new(&format!("shares-{}", punishment.map_or("none".to_owned(), |rho| rho.to_string())));
    let folder: &Path = place.as_ref();
    let arbitration = create(&place);
    let cpu = last_cpu();
    // The freezer would be as good; the occupier needs no group, which fairness makes anyway.
    let options = Options {
        counter: Counter::Software,
        throttle: Throttle::Occupier,
        punishment: Some(punishment.unwrap_or(0.0)),
        ..Options::new([cpu])
    };
    let regulator = regulator(&arbitration, options)?;
    let start = |role| {
        let mut command = Process::command(&place, role, &[]);
        regulator.place(&mut command).expect("there is a group");
        Process::spawn(&mut command)
    };
    let (_memory, _compute) = (start("memory"), start("compute"));
    let thread = |name: &str| -> u32 {
        until("it says which thread it is", || {
            fs::read_to_string(folder.join(name)).is_ok_and(|text| text.parse::<u32>().is_ok())
        });
        fs::read_to_string(folder.join(name)).expect("it is there").parse().expect("a number")
    };
    let (memory, compute) = (thread("memory"), thread("compute"));
    let client = arbitration.register("us", Base::Background).expect("there is room");
    // What fits a third of a period, by what the program has unhindered.
    let traffic = arbitration.traffic(cpu).expect("it is counted");
    let ran = |thread| usage(thread).expect("it lives").ran.0 as f64;
    thread::sleep(Duration::from_millis(100));
    let (bytes, time) = (traffic.counted(), ran(memory));
    thread::sleep(Duration::from_millis(300));
    let rate = (traffic.counted() - bytes) as f64 * 1e9 / (ran(memory) - time).max(1.0);
    let _section = client.lock_bandwidth((rate / 3.0) as u64).expect("it excludes no thread");
    thread::sleep(Duration::from_millis(500));
    let throttled = || regulator.reports()[0].regulation.throttled.0 as f64;
    let before = (ran(memory), throttled(), ran(compute));
    thread::sleep(span);
    let shares =
        Shares { memory: ran(memory) - before.0, throttled: throttled() - before.1, compute: ran(compute) - before.2 };
    println!(
        "punishment {punishment:?}: memory {:.3} of the core at beta {:.3}, throttled for {:.3} s of {:.1} s",
        shares.of_memory(),
        shares.beta(),
        shares.throttled / 1e9,
        span.as_secs_f64()
    );
    Some(shares)
}

/// BWLOCK.md, formula 5, from paper 004's equations 1 and 2.
fn expected(beta: f64, punishment: f64) -> f64 {
    1.0 / (1.0 + beta + punishment * (1.0 - beta))
}

/// The core's share of formula 5 within 0.05, and the throttled time that the paper's Fig. 10 saves.
fn shares_are_right(span: Duration) {
    let _alone = alone();
    on_a_calm_machine(|| {
        let Some(fair) = shares(None, span) else { return Ok(()) };
        let Some(once) = shares(Some(1.0), span) else { return Ok(()) };
        let Some(thrice) = shares(Some(3.0), span) else { return Ok(()) };
        // Of what the two had of the core together, which other programs may have made less.
        let lost = |of: &Shares| of.throttled / (of.memory + of.throttled + of.compute);
        let saved = |with: &Shares| 100.0 * (1.0 - lost(with) / lost(&fair));
        let (once_saved, thrice_saved) = (saved(&once), saved(&thrice));
        println!("throttled time saved: {once_saved:.0} % (paper: 39), {thrice_saved:.0} % (paper: 62)");
        // The programs are other processes than this one, and disturbed where they had less than a core together.
        let had = |one: &Shares| (one.memory + one.throttled + one.compute) / span.as_nanos() as f64;
        let calm = Some([&fair, &once, &thrice].iter().all(|one| had(one) >= 0.95));
        // Whatever else the machine does, punishment must not favour what is throttled.
        assert!(thrice.of_memory() < fair.of_memory(), "{} and {}", thrice.of_memory(), fair.of_memory());
        for (punishment, found) in [(0.0, &fair), (1.0, &once), (3.0, &thrice)] {
            let expected = expected(found.beta(), punishment);
            let found = found.of_memory();
            if (found - expected).abs() > 0.05 {
                let what = format!("punishment {punishment}: {found:.3} of the core, not {expected:.3}");
                return Err(Late { what, calm });
            }
        }
        // 30 and 55 %, within 10 points. The three are compared, so that each needs the same calm machine.
        if once_saved < 20.0 || thrice_saved < 45.0 {
            let what = format!("{once_saved:.0} and {thrice_saved:.0} % of the throttled time saved, not 30 and 55");
            return Err(Late { what, calm });
        }
        Ok(())
    });
}

#[test]
fn throttled_programs_have_the_shares_of_the_throttle_fair_scheduler() {
    shares_are_right(Duration::from_secs(3));
}
