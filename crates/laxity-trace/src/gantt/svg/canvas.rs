//! Shapes in layers: a later shape covers earlier ones of its own layer only.

use ::svg::Document;
use ::svg::node::Blob;
use ::svg::node::element::{Group, Line, Path, Rectangle, Title};
use laxity_model::text::printable_lines;

use super::palette;

/// Lines and marks.
pub const INK: &str = "#202020";
/// Secondary text and thin lines.
pub const GRAY: &str = "#606060";
const FONT: &str = "Helvetica, Arial, 'Liberation Sans', sans-serif";

/// From the back to the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Grid and row backgrounds.
    Grid,
    /// Bars.
    Bars,
    /// Arrows and other marks.
    Marks,
    /// Missed deadlines, which nothing but text may cover.
    Misses,
    /// Text.
    Text,
}

/// The picture while it is drawn.
pub struct Canvas {
    layers: [Group; 5],
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    pub size: f64,
    pub fill: &'static str,
    pub anchor: &'static str,
    pub bold: bool,
    /// A white edge around the letters, for text on patterns and lines.
    pub halo: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        TextStyle { size: 11.0, fill: INK, anchor: "start", bold: false, halo: false }
    }
}

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub struct Stroke<'a> {
    pub colour: &'a str,
    pub width: f64,
    pub dashes: &'static str,
}

impl<'a> Stroke<'a> {
    /// A solid line.
    pub const fn solid(colour: &'a str, width: f64) -> Self {
        Stroke { colour, width, dashes: "none" }
    }
}

impl Canvas {
    pub fn new() -> Self {
        Canvas { layers: std::array::from_fn(|_| Group::new()) }
    }

    /// The document with all that was drawn, on white.
    pub fn finish(self, document: Document, (width, height): (f64, f64)) -> Document {
        let background = Rectangle::new().set("width", width).set("height", height).set("fill", "#FFFFFF");
        let document = document.set("font-family", FONT).add(palette::patterns()).add(background);
        self.layers.into_iter().fold(document, Document::add)
    }

    /// A filled rectangle with a thin outline, and a tooltip unless that is empty.
    pub fn bar(&mut self, area: Area, fill: &str, tooltip: &str) {
        let mut shape = rectangle(area, fill).set("stroke", INK).set("stroke-width", 0.6);
        if !tooltip.is_empty() {
            shape = shape.add(Title::new(clean(tooltip)));
        }
        self.push(Layer::Bars, shape);
    }

    /// Like [`Canvas::bar`], with a pattern of lines or dots over the fill.
    pub fn hatched_bar(&mut self, area: Area, (fill, pattern): (&str, &str), tooltip: &str) {
        self.fill(Layer::Bars, area, fill);
        self.bar(area, pattern, tooltip);
    }

    /// A dashed outline over a light fill.
    pub fn outline(&mut self, area: Area, (fill, stroke): (&str, &str), tooltip: &str) {
        let mut shape =
            rectangle(area, fill).set("stroke", stroke).set("stroke-width", 1).set("stroke-dasharray", "3,2");
        if !tooltip.is_empty() {
            shape = shape.add(Title::new(clean(tooltip)));
        }
        self.push(Layer::Bars, shape);
    }

    /// A filled shape with these corners.
    pub fn polygon(&mut self, layer: Layer, corners: &[(f64, f64)], fill: &str) {
        let corners: Vec<String> = corners.iter().map(|&(x, y)| format!("{},{}", round(x), round(y))).collect();
        self.push(layer, Path::new().set("d", format!("M{} Z", corners.join(" L"))).set("fill", fill));
    }

    /// Like [`Canvas::bar`], with a torn right edge: the job would have gone on.
    pub fn torn_bar(&mut self, area: Area, fill: &str, tooltip: &str) {
        let Area { x, y, width, height } = area;
        let (right, tooth) = (x + width, (width / 3.0).min(3.0));
        let quarter = height / 4.0;
        let path = format!(
            "M{},{} L{},{} L{},{} L{},{} L{},{} L{},{} L{},{} Z",
            round(x),
            round(y),
            round(right),
            round(y),
            round(right - tooth),
            round(y + quarter),
            round(right),
            round(y + 2.0 * quarter),
            round(right - tooth),
            round(y + 3.0 * quarter),
            round(right),
            round(y + height),
            round(x),
            round(y + height),
        );
        let mut shape = Path::new().set("d", path).set("fill", fill).set("stroke", INK).set("stroke-width", 0.6);
        if !tooltip.is_empty() {
            shape = shape.add(Title::new(clean(tooltip)));
        }
        self.push(Layer::Bars, shape);
    }

    /// A filled rectangle without outline.
    pub fn fill(&mut self, layer: Layer, area: Area, fill: &str) {
        self.push(layer, rectangle(area, fill));
    }

    pub fn line(&mut self, layer: Layer, from: (f64, f64), to: (f64, f64), stroke: Stroke<'_>) {
        let mut line = Line::new()
            .set("x1", round(from.0))
            .set("y1", round(from.1))
            .set("x2", round(to.0))
            .set("y2", round(to.1))
            .set("stroke", stroke.colour)
            .set("stroke-width", stroke.width);
        if stroke.dashes != "none" {
            line = line.set("stroke-dasharray", stroke.dashes);
        }
        self.push(layer, line);
    }

    /// A straight arrow with its head at `to`.
    pub fn arrow(&mut self, layer: Layer, from: (f64, f64), to: (f64, f64), stroke: Stroke<'_>, head: f64) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).sqrt().max(0.01);
        let (ux, uy) = (dx / length, dy / length);
        let neck = (to.0 - ux * head, to.1 - uy * head);
        self.line(layer, from, neck, stroke);
        let half = head * 0.45;
        let path = format!(
            "M{},{} L{},{} L{},{} Z",
            round(to.0),
            round(to.1),
            round(neck.0 - uy * half),
            round(neck.1 + ux * half),
            round(neck.0 + uy * half),
            round(neck.1 - ux * half),
        );
        self.push(layer, Path::new().set("d", path).set("fill", stroke.colour));
    }

    pub fn text(&mut self, layer: Layer, x: f64, y: f64, text: &str, style: TextStyle) {
        self.push(layer, Blob::new(format!("{}{}</text>", text_start(x, y, style), escape(text))));
    }

    /// A text with a subscript.
    pub fn subscripted(&mut self, x: f64, y: f64, (base, subscript): (&str, &str), style: TextStyle) {
        // Written by hand: the builder would put a line break, which shows as a space, before the subscript.
        let size = round(style.size * SUBSCRIPT);
        let drop = round(style.size * 0.22);
        let start = text_start(x, y, style);
        self.push(
            Layer::Text,
            Blob::new(format!(
                r#"{start}{}<tspan dy="{drop}" font-size="{size}">{}</tspan></text>"#,
                escape(base),
                escape(subscript)
            )),
        );
    }

    fn push(&mut self, layer: Layer, node: impl Into<Box<dyn ::svg::Node>>) {
        use ::svg::Node as _;
        self.layers[layer as usize].append(node);
    }
}

/// Size of a subscript relative to its base.
const SUBSCRIPT: f64 = 0.72;

/// Estimated width of a text of this size: the fonts named are at most this wide for mixed text.
pub fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 't' | 'f' | '.' | ',' | ' ' | '|' | '\'' | ':' | '(' | ')' => 0.32,
            'm' | 'w' | 'M' | 'W' | '@' => 0.86,
            c if c.is_ascii_uppercase() => 0.68,
            c if c.is_ascii() => 0.56,
            _ => 1.0,
        })
        .sum();
    ems * size
}

/// Estimated width of a text with a subscript.
pub fn subscripted_width((base, subscript): (&str, &str), size: f64) -> f64 {
    text_width(base, size) + text_width(subscript, size * SUBSCRIPT)
}

/// As much of both ends of `text` as fits into `room`, with an ellipsis where the middle was cut: names of nodes begin
/// alike, those of tasks that were numbered end differently.
pub fn shorten(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let cut = |kept: usize| {
        let (head, tail) = (kept / 2, kept - kept / 2);
        chars[..head].iter().chain(['…'].iter()).chain(&chars[chars.len() - tail..]).collect::<String>()
    };
    (0..chars.len()).rev().map(cut).find(|shown| text_width(shown, size) <= room).unwrap_or_else(|| "…".to_owned())
}

/// To a hundredth of a pixel, and never `-0`.
pub fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0 + 0.0
}

/// `text` without what XML forbids. Control characters, and those that show a line in another order than it is written, are
/// shown by their numbers.
pub fn clean(text: &str) -> String {
    printable_lines(text).chars().filter(|&c| !c.is_control() && c != '\u{FFFE}' && c != '\u{FFFF}').collect()
}

fn escape(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn rectangle(area: Area, fill: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(area.x))
        .set("y", round(area.y))
        .set("width", round(area.width))
        .set("height", round(area.height))
        .set("fill", fill)
}

fn text_start(x: f64, y: f64, style: TextStyle) -> String {
    let TextStyle { size, fill, anchor, bold, halo } = style;
    let weight = if bold { r#" font-weight="bold""# } else { "" };
    let edge = if halo {
        r##" stroke="#FFFFFF" stroke-width="2.5" stroke-linejoin="round" paint-order="stroke""##
    } else {
        ""
    };
    let (x, y, size) = (round(x), round(y), round(size));
    format!(r#"<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}{edge}>"#)
}
