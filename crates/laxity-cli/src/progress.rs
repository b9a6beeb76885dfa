//! How far a simulation is, or a run.

use std::fmt::Display;
use std::sync::mpsc;
use std::time::{Duration, Instant as WallInstant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use laxity_model::{Instant, Nanos};

use crate::quantity::{rough, short};
use crate::style::painted;

/// Steps of the bar.
const STEPS: u64 = 1_000;
/// Nothing is shown of what is over before anyone would read it.
const SHOWN_AFTER: Duration = Duration::from_millis(300);

/// A bar on standard error, if that is a terminal.
pub struct Progress {
    bar: Option<ProgressBar>,
    duration: Nanos,
    started: WallInstant,
}

impl Progress {
    /// The progress of something that takes `duration`, not shown if `quiet`.
    pub fn new(label: String, duration: Nanos, quiet: bool) -> Self {
        let bar = (!quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{prefix}{bar:24.cyan/dim} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━─"));
            bar.set_prefix(painted(&label));
            bar
        });
        Progress { bar, duration, started: WallInstant::now() }
    }

    /// It reached `now` and has completed `jobs` jobs.
    pub fn update(&self, now: Instant, jobs: u64) {
        let rate = |elapsed: Duration| format!("{} jobs/s", rough(jobs as f64 / elapsed.as_secs_f64()));
        self.show(now, rate);
    }

    /// It reached `now` and is doing `what`.
    pub fn doing(&self, now: Instant, what: impl Display) {
        self.show(now, |_| what.to_string());
    }

    /// Shows that it reached `now`, and what else there is to say after this time.
    fn show(&self, now: Instant, say: impl FnOnce(Duration) -> String) {
        let Some(bar) = &self.bar else { return };
        let elapsed = self.started.elapsed();
        if elapsed < SHOWN_AFTER {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        let done = now.0 as f64 / self.duration.0 as f64;
        let left = elapsed.as_secs_f64() * (1.0 - done) / done.max(1e-9);
        // To the hundredth of the whole: digits that race by tell nothing.
        let hundredth = (self.duration.0 / 100).max(1);
        let reached = short(Nanos(now.0 / hundredth * hundredth));
        let said = say(elapsed);
        bar.set_position((done * STEPS as f64) as u64);
        let text = format!("{reached} of {}, {said}, {} left", short(self.duration), left_over(left));
        bar.set_message(painted(&text));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Shows on standard error, if that is a terminal, what is being done and for how long, of something that does not say how far
/// it is.
pub struct Working {
    bar: ProgressBar,
    /// Its end tells the thread that would show the bar that there is no need to.
    is_over: Option<mpsc::Sender<()>>,
}

impl Working {
    /// `what` is being done from now on; not shown if `quiet`.
    pub fn new(what: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{spinner:.cyan} {msg}, {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(painted(what));
        let is_over = (!quiet).then(|| {
            let (sender, receiver) = mpsc::channel::<()>();
            let bar = bar.clone();
            std::thread::spawn(move || {
                if receiver.recv_timeout(SHOWN_AFTER) == Err(mpsc::RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
                    bar.enable_steady_tick(Duration::from_millis(200));
                }
            });
            sender
        });
        Working { bar, is_over }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.is_over = None;
        self.bar.finish_and_clear();
    }
}

/// Seconds of waiting, as one says them.
fn left_over(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_said_in_words() {
        assert_eq!(left_over(0.2), "1 s");
        assert_eq!(left_over(61.0), "2 min");
        assert_eq!(left_over(7_260.0), "2 h 1 min");
    }
}
