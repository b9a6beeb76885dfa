//! The reference documentation shows files that work and messages that are printed.

use laxity_model::Workload;

const REFERENCE: &str = include_str!("../../../../docs/reference/workload-file.md");

/// The blocks of code in `language`.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let inside = REFERENCE.split(fence.as_str()).skip(1);
    inside.map(|rest| rest.split("```").next().expect("split yields one part at least")).collect()
}

#[test]
fn every_toml_block_is_read() {
    let blocks = blocks("toml");
    assert_eq!(blocks.len(), 13);
    let car = blocks.iter().find(|block| block.contains("name = \"car\"")).expect("the graph with latest values");
    let node = |name: &str, rest: &str| format!("[[graph.node]]\nname = \"{name}\"\nwcet = \"1 ms\"\n{rest}\n");
    let source = |name: &str| node(name, "period = \"50 ms\"");
    // The reference shows one node of this graph.
    let others = [source("camera"), source("lidar"), node("detect", ""), node("planner", "")].concat();
    for block in &blocks {
        // A part of a file becomes a file.
        let head = "laxity = 1\nname = \"w\"\nplatform.cpus = 4\n";
        let text = match block.split_whitespace().next() {
            Some("laxity") => (*block).to_owned(),
            // The source of the reference's graph is its camera.
            Some("object") => {
                let node = |name| format!("[[graph.node]]\nname = \"{name}\"\nwcet = \"1 ms\"\n");
                let source = node("camera") + "period = \"9 ms\"\n";
                let edges = "edge = [\"camera -> track\", \"track -> stitch\"]\n";
                format!("{head}[[graph]]\nname = \"g\"\n{edges}{block}{source}{}{}", node("track"), node("stitch"))
            }
            Some("body") => format!(
                "{head}[[platform.gpu]]\nname = \"g\"\nbandwidth = \"1 GB/s\"\n[[resource]]\nname = \"frame-pool\"\n\
                 [[task]]\nname = \"t\"\nperiod = \"1 s\"\n{block}"
            ),
            Some("[[chain]]") => format!("{head}{car}{others}{block}"),
            Some("[[graph]]") if block == car => format!("{head}{car}{others}"),
            _ => format!("{head}{block}"),
        };
        Workload::from_toml(&text, "block.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    }
}

#[test]
fn the_messages_shown_are_those_printed() {
    let text = blocks("toml")[0].replace("\"9 ms\"", "\"90 ms\"").replace("deadline =", "dedline =");
    let errors = Workload::from_toml(&text, "demo.toml").expect_err("two mistakes");
    assert_eq!(format!("{errors}\n"), blocks("text")[0]);
}
