//! The curve of a threshold search, drawn.

use std::io::Write;
use std::path::Path;

use laxity_bandwidth::Trial;
use svg::Document;
use svg::node::element::{Circle, Line, Polyline, Text};

use super::rate;
use crate::error::CliError;
use crate::output_file::OutputFile;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Around the plot.
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 30.0;

/// Draws slowdown over budget, budgets by their logarithms, to the file at `path`: what protects, and at the right end
/// `unprotected`, beside hogs without a budget.
pub fn write(
    path: &Path,
    trials: &[Trial],
    unprotected: Trial,
    slowdown_max: f64,
    threshold: Option<u64>,
) -> Result<(), CliError> {
    let mut file = OutputFile::create(path)?;
    let text = format!("{}\n", draw(trials, unprotected, slowdown_max, threshold));
    file.write_all(text.as_bytes()).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    file.commit()
}

fn draw(tried: &[Trial], unprotected: Trial, slowdown_max: f64, threshold: Option<u64>) -> Document {
    let trials: Vec<Trial> = tried.iter().copied().chain([unprotected]).collect();
    let budgets = trials.iter().map(|trial| trial.budget.max(1) as f64);
    let (least, most) = budgets.fold((f64::MAX, 1.0f64), |(least, most), one| (least.min(one), most.max(one)));
    // One budget alone stands in the middle.
    let (low, high) = if most > least { (least.ln(), most.ln()) } else { (least.ln() - 1.0, least.ln() + 1.0) };
    let top = trials.iter().map(|trial| trial.slowdown).fold(slowdown_max, f64::max) * 1.05;
    let across = |budget: u64| LEFT + ((budget.max(1) as f64).ln() - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let up = |slowdown: f64| HEIGHT - BOTTOM - (slowdown.max(1.0) - 1.0) / (top - 1.0) * (HEIGHT - BOTTOM - TOP);
    let points: Vec<String> =
        trials.iter().map(|trial| format!("{:.1},{:.1}", across(trial.budget), up(trial.slowdown))).collect();
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH as i32, HEIGHT as i32))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(line((LEFT, up(1.0)), (WIDTH - RIGHT, up(1.0)), "black", "none"))
        .add(line((LEFT, up(1.0)), (LEFT, TOP), "black", "none"))
        .add(line((LEFT, up(slowdown_max)), (WIDTH - RIGHT, up(slowdown_max)), "#b02a2a", "4 3"))
        .add(text(LEFT - 6.0, up(1.0) + 4.0, "end", "1.0"))
        .add(text(LEFT - 6.0, up(slowdown_max) + 4.0, "end", &format!("{slowdown_max:.2}")))
        .add(text(LEFT + 8.0, TOP + 4.0, "start", "time, relative to alone"))
        .add(text(WIDTH - RIGHT, HEIGHT - 10.0, "end", "budget of each best-effort CPU"))
        .add(Polyline::new().set("points", points.join(" ")).set("fill", "none").set("stroke", "#2a5db0"));
    for trial in &trials {
        let (x, y) = (across(trial.budget), up(trial.slowdown));
        let is_threshold = threshold == Some(trial.budget);
        let colour = if trial.slowdown <= slowdown_max { "#2a8f3c" } else { "#b02a2a" };
        let radius = if is_threshold { 6 } else { 4 };
        document = document.add(Circle::new().set("cx", x).set("cy", y).set("r", radius).set("fill", colour));
        if is_threshold {
            document = document.add(text(x, HEIGHT - BOTTOM + 18.0, "middle", &rate(trial.budget)));
        }
        if *trial == unprotected {
            let label = format!("unprotected: {}", rate(trial.budget));
            document = document.add(text(x - 10.0, y + 4.0, "end", &label));
        }
    }
    document
}

fn line(from: (f64, f64), to: (f64, f64), colour: &str, dashes: &str) -> Line {
    let line = Line::new().set("x1", from.0).set("y1", from.1).set("x2", to.0).set("y2", to.1);
    line.set("stroke", colour).set("stroke-dasharray", dashes)
}

fn text(x: f64, y: f64, anchor: &str, content: &str) -> Text {
    Text::new(content).set("x", x).set("y", y).set("text-anchor", anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_budget_is_a_point_and_the_threshold_is_named() {
        let trials = [(16_000_000, 1.02), (64_000_000, 1.08), (256_000_000, 1.4)];
        let trials = trials.map(|(budget, slowdown)| Trial { budget, slowdown });
        let unprotected = Trial { budget: 9_000_000_000, slowdown: 1.9 };
        let drawn = draw(&trials, unprotected, 1.1, Some(64_000_000)).to_string();
        assert_eq!(drawn.matches("<circle").count(), 4);
        assert!(drawn.contains("64.0 MB/s") && !drawn.contains("256.0 MB/s"), "{drawn}");
        assert!(drawn.contains("unprotected: 9000.0 MB/s"), "{drawn}");
        assert!(!drawn.contains("NaN") && !draw(&[], unprotected, 1.1, None).to_string().contains("NaN"));
    }
}
