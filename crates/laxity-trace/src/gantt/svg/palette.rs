//! Colours and fill patterns.

use ::svg::node::element::{Circle, Definitions, Path, Pattern, Rectangle};
use laxity_model::{LockId, OverheadKind, TaskId};

/// Okabe and Ito's colours, made for all kinds of colour vision, in an order in which neighbours differ in lightness.
const OKABE_ITO: [&str; 7] = ["#56B4E9", "#D55E00", "#F0E442", "#0072B2", "#E69F00", "#009E73", "#CC79A7"];

/// Missed deadlines.
pub const RED: &str = "#C00000";

/// A CPU that carries out no thread: a colour that no task has.
pub const STOLEN: &str = "#8E1B6B";
/// The colour of what has a CPU and is no task.
pub const OUTSIDE: &str = "#7A4A00";
/// The ground below [`STOLEN_PATTERN`] and [`OUTSIDE_PATTERN`].
pub const STOLEN_FILL: &str = "#F7E1F0";

/// A colour for `task`: one of Okabe and Ito's for the first seven, then generated ones that go around the colour
/// circle by the golden angle and through three levels of brightness.
pub fn task_colour(task: TaskId) -> String {
    match OKABE_ITO.get(task.index()) {
        Some(colour) => (*colour).to_owned(),
        None => {
            let step = task.0 as u64 - OKABE_ITO.len() as u64;
            generated((step * 137_508 + 20_000) % 360_000, [105, 215, 160][(step % 3) as usize])
        }
    }
}

/// The colour of this hue (thousandths of a degree) whose brightness is closest to `brightness`.
fn generated(hue: u64, brightness: u64) -> String {
    let candidates = (10..=95).map(|lightness| hex(hsl(hue, 55, lightness)));
    candidates.min_by_key(|colour| luma(colour).abs_diff(brightness)).unwrap_or_default()
}

/// Black or white, whichever is read more easily on `colour` (`#RRGGBB`).
pub fn text_on(colour: &str) -> &'static str {
    if luma(colour) >= 125 { "#000000" } else { "#FFFFFF" }
}

/// A darker `colour`, for thin strokes on white.
pub fn darker(colour: &str) -> String {
    hex(channels(colour).map(|channel| channel * 3 / 5))
}

/// Perceived brightness, 0 to 255 (ITU-R BT.601).
fn luma(colour: &str) -> u64 {
    let [red, green, blue] = channels(colour);
    (299 * red + 587 * green + 114 * blue) / 1_000
}

fn channels(colour: &str) -> [u64; 3] {
    let value = u64::from_str_radix(colour.trim_start_matches('#'), 16).unwrap_or(0);
    [value >> 16 & 255, value >> 8 & 255, value & 255]
}

fn hex([red, green, blue]: [u64; 3]) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// HSL to RGB in integers, so that every machine draws the same: hue in thousandths of a degree, the others in percent.
fn hsl(hue: u64, saturation: u64, lightness: u64) -> [u64; 3] {
    // chroma = (1 - |2 L - 1|) * S, in hundredths of a percent.
    let chroma = (100 - (2 * lightness).abs_diff(100)) * saturation;
    let sector = hue / 60_000;
    let within = hue % 120_000;
    let second = chroma * (60_000 - within.abs_diff(60_000)) / 60_000;
    let base = (lightness * 100).saturating_sub(chroma / 2);
    let [red, green, blue] = match sector {
        0 => [chroma, second, 0],
        1 => [second, chroma, 0],
        2 => [0, chroma, second],
        3 => [0, second, chroma],
        4 => [second, 0, chroma],
        _ => [chroma, 0, second],
    };
    [red, green, blue].map(|channel| ((base + channel) * 255 / 10_000).min(255))
}

/// The fill of an overhead: solid or a pattern of [`patterns`].
pub const fn overhead_fill(kind: OverheadKind) -> &'static str {
    match kind {
        OverheadKind::Release => "#202020",
        OverheadKind::Scheduling => "url(#diagonal)",
        OverheadKind::ContextSwitch => "#8C8C8C",
        OverheadKind::Tick => "url(#dots)",
        OverheadKind::TimerRearming => "url(#horizontal)",
        OverheadKind::TopHalf | OverheadKind::BottomHalf => "#505050",
        OverheadKind::ThreadRelease | OverheadKind::PaiEnqueue | OverheadKind::PaiCheck => "url(#diagonal)",
        OverheadKind::IpiLatency | OverheadKind::CachePreemption | OverheadKind::CacheMigration => "url(#cross)",
    }
}

/// The pattern of a top half, over its owner's colour.
pub const TOP_HALF_PATTERN: &str = "url(#top-half)";
/// The pattern of a bottom half, over its owner's colour.
pub const BOTTOM_HALF_PATTERN: &str = "url(#bottom-half)";
/// The pattern of a stolen CPU, over [`STOLEN_FILL`].
pub const STOLEN_PATTERN: &str = "url(#stolen)";
/// The pattern of what is no task, over [`STOLEN_FILL`]: lines that rise, where those of a stolen CPU fall.
pub const OUTSIDE_PATTERN: &str = "url(#outside)";
/// The pattern of spinning, over the task's colour.
pub const SPINNING_PATTERN: &str = "url(#spinning)";

/// The colour of bars on behalf of `owner`; gray where there is no owner, or where it is not known.
pub fn owner_colour(owner: Option<TaskId>) -> String {
    owner.map_or_else(|| "#C8C8C8".to_owned(), task_colour)
}

/// A pale colour for the critical sections of a lock, unlike those of tasks.
pub fn lock_colour(lock: LockId) -> &'static str {
    const PALE: [&str; 6] = ["#DCE6F2", "#FBE3CF", "#DDEFD8", "#F0DDEB", "#F2EDC4", "#DDEFF0"];
    PALE[lock.index() % PALE.len()]
}

/// The fill of a wait for the scheduler lock.
pub const LOCK_FILL: &str = "url(#vertical)";

/// The fill patterns that the functions above name.
pub fn patterns() -> Definitions {
    let lines = |id: &str, lines: &str| {
        pattern(id)
            .add(Path::new().set("d", lines).set("stroke", "#202020").set("stroke-width", 1.1).set("fill", "none"))
    };
    Definitions::new()
        .add(overlay("top-half", "M1,0 L1,3 M0,1 L3,1", 3))
        .add(overlay("bottom-half", "M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5", 6))
        .add(overlay("spinning", "M1.2,2 L2.8,2 M3.7,4.5 L5.3,4.5", 5))
        .add(hatching("outside", "M-1,1 L1,-1 M0,6 L6,0 M5,7 L7,5", 6, OUTSIDE))
        .add(hatching("stolen", "M-1,5 L1,7 M0,0 L6,6 M5,-1 L7,1", 6, STOLEN))
        .add(lines("diagonal", "M-1,1 L1,-1 M0,4 L4,0 M3,5 L5,3"))
        .add(lines("horizontal", "M0,2 L4,2"))
        .add(lines("vertical", "M2,0 L2,4"))
        .add(lines("cross", "M0,0 L4,4 M0,4 L4,0"))
        .add(pattern("dots").add(Circle::new().set("cx", 2).set("cy", 2).set("r", 1).set("fill", "#202020")))
}

/// Lines without a background: the bar below shows between them.
fn overlay(id: &str, lines: &str, size: u32) -> Pattern {
    hatching(id, lines, size, "#202020")
}

fn hatching(id: &str, lines: &str, size: u32, colour: &str) -> Pattern {
    Pattern::new()
        .set("id", id)
        .set("width", size)
        .set("height", size)
        .set("patternUnits", "userSpaceOnUse")
        .add(Path::new().set("d", lines).set("stroke", colour).set("stroke-width", 1.2).set("fill", "none"))
}

fn pattern(id: &str) -> Pattern {
    Pattern::new()
        .set("id", id)
        .set("width", 4)
        .set("height", 4)
        .set("patternUnits", "userSpaceOnUse")
        .add(Rectangle::new().set("width", 4).set("height", 4).set("fill", "#FFFFFF"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_tasks_have_fifty_colours() {
        let colours: std::collections::BTreeSet<String> = (0..50).map(|task| task_colour(TaskId(task))).collect();
        assert_eq!(colours.len(), 50);
        assert!(colours.iter().all(|colour| colour.len() == 7), "{colours:?}");
    }

    #[test]
    fn neighbours_differ_in_lightness_for_gray_print() {
        for task in 0..50 {
            let [one, next] = [task, task + 1].map(|task| luma(&task_colour(TaskId(task))));
            assert!(one.abs_diff(next) >= 15, "tasks {task} and the next: {one} and {next} of 255");
        }
    }

    #[test]
    fn hsl_agrees_with_known_colours() {
        assert_eq!(hsl(0, 100, 50), [255, 0, 0]);
        assert_eq!(hsl(120_000, 100, 50), [0, 255, 0]);
        assert_eq!(hsl(210_000, 0, 100), [255, 255, 255]);
        assert_eq!(hsl(300_000, 100, 25), [127, 0, 127]);
    }
}
