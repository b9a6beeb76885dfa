//! Merges spans narrower than a pixel, so that a window with thousands of intervals stays small and legible.

use std::collections::BTreeMap;

use super::canvas::Area;
use super::layout::Row;

/// A span in a row, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span<K> {
    /// Left end.
    pub x0: f64,
    /// Right end.
    pub x1: f64,
    /// Its fill.
    pub fill: K,
}

/// The spans of a row as they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged<K> {
    /// Positions, in the list given, of the spans wide enough to be drawn one by one.
    pub wide: Vec<usize>,
    /// The others, merged.
    pub strips: Vec<Strip<K>>,
}

/// A run of pixels that belongs to spans too narrow to be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip<K> {
    /// Left end.
    pub x: f64,
    /// Width in pixels.
    pub width: f64,
    /// The fill of most of it.
    pub fill: K,
    /// How much of it is filled, in eighths, 1 to 8.
    pub eighths: u8,
}

impl<K> Strip<K> {
    /// Where it stands in a row.
    pub fn area(&self, row: &Row) -> Area {
        let height = row.bar() * f64::from(self.eighths) / 8.0;
        Area { x: self.x, y: row.baseline - height, width: self.width, height }
    }
}

/// Spans narrower than this many pixels are merged.
const NARROW: f64 = 1.0;

/// Merges narrow spans pixel by pixel: each pixel shows the fill of most of it, and adjacent equal pixels join.
pub fn merge<K: Copy + Ord>(spans: &[Span<K>]) -> Merged<K> {
    let mut wide = Vec::new();
    let mut pixels: BTreeMap<i64, BTreeMap<K, f64>> = BTreeMap::new();
    for (position, span) in spans.iter().enumerate() {
        if span.x1 - span.x0 >= NARROW {
            wide.push(position);
            continue;
        }
        // A span below a pixel lies in one or two of them.
        let (first, last) = (span.x0.floor(), span.x1.floor());
        for pixel in [first, last] {
            let share = (span.x1.min(pixel + 1.0) - span.x0.max(pixel)).max(0.0);
            *pixels.entry(pixel as i64).or_default().entry(span.fill).or_default() += share;
            if first == last {
                break;
            }
        }
    }
    let mut strips: Vec<Strip<K>> = Vec::new();
    for (pixel, fills) in pixels {
        let total: f64 = fills.values().sum();
        let most = fills.into_iter().max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
        let Some((fill, _)) = most else { continue };
        let eighths = (total * 8.0).round().clamp(1.0, 8.0) as u8;
        let x = pixel as f64;
        match strips.last_mut() {
            Some(last) if last.fill == fill && last.eighths == eighths && last.x + last.width == x => last.width += 1.0,
            _ => strips.push(Strip { x, width: 1.0, fill, eighths }),
        }
    }
    Merged { wide, strips }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_narrow_spans_become_one_strip() {
        // Half of every tenth of a pixel is filled, from 10 to 110.
        let spans: Vec<Span<u8>> = (0..1_000)
            .map(|index| Span { x0: 10.0 + f64::from(index) * 0.1, x1: 10.05 + f64::from(index) * 0.1, fill: 3 })
            .collect();
        let merged = merge(&spans);
        assert!(merged.wide.is_empty());
        assert_eq!(merged.strips, [Strip { x: 10.0, width: 100.0, fill: 3, eighths: 4 }]);
    }

    #[test]
    fn a_pixel_shows_what_fills_most_of_it_and_wide_spans_stay() {
        let spans = [
            Span { x0: 0.0, x1: 5.0, fill: 'a' },
            Span { x0: 5.0, x1: 5.3, fill: 'b' },
            Span { x0: 5.3, x1: 5.9, fill: 'c' },
            Span { x0: 5.9, x1: 6.1, fill: 'b' },
        ];
        let merged = merge(&spans);
        assert_eq!(merged.wide, [0]);
        let strips: Vec<_> = merged.strips.iter().map(|strip| (strip.x, strip.fill, strip.eighths)).collect();
        assert_eq!(strips, [(5.0, 'c', 8), (6.0, 'b', 1)]);
    }
}
