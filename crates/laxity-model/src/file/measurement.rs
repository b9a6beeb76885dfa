//! The file of `laxity measure`, TOML or JSON. Its tables `worst` and `average` are written as `platform.overheads` is.

use super::decode::{self, FORMAT};
use super::reader::{Fields, Item};
use super::tree::{Lines, Node};
use super::write::Outline::{self, Integer, List, Section, Sections, Text};
use super::{encode, json, syntax_errors, toml, write};
use crate::error::{ErrorKind, FieldPath, Finding, Findings, WorkloadError, WorkloadErrors};
use crate::{CpuId, MeasuredMachine, MeasuredQuantity, Measurement, Nanos, OverheadProfile, validate};

const FILE: &[&str] = &["laxity", "machine", "worst", "average", "quantity"];
const MACHINE: &[&str] =
    &["processor", "kernel", "governor", "cpus", "scheduler", "worst", "working_set", "measured_for"];
const QUANTITY: &[&str] = &["name", "count", "min", "median", "mean", "p99", "p999", "max"];

impl Measurement {
    /// Reads what [`Measurement::to_toml`] or [`Measurement::to_json`] wrote: JSON if it begins with a brace, as no TOML
    /// does. `file` names it in errors, of which all are returned.
    ///
    /// # Errors
    /// What is wrong with the file, line by line.
    pub fn from_text(text: &str, file: &str) -> Result<Measurement, WorkloadErrors> {
        let is_json = text.trim_start().starts_with('{');
        let tree = if is_json { json::parse(text).map_err(|error| vec![error]) } else { toml::parse(text) };
        let tree = tree.map_err(|errors| syntax_errors(errors, text, file))?;
        let mut findings = Findings::default();
        let found = measurement(&tree, &mut findings);
        if let Some(measurement) = found.filter(|_| findings.list.is_empty()) {
            return Ok(measurement);
        }
        let lines = Lines::of(text);
        let mut list = findings.list;
        let offset = |finding: &Finding| finding.offset.unwrap_or_else(|| tree.locate(&finding.path).offset);
        list.sort_by_key(offset);
        let error = |finding: Finding| WorkloadError {
            file: Some(file.to_owned()),
            position: Some(lines.position(offset(&finding))),
            ..WorkloadError::new(finding, |prefix| tree.name_at(prefix))
        };
        Err(WorkloadErrors::new(list.into_iter().map(error).collect()))
    }

    /// As TOML.
    pub fn to_toml(&self) -> String {
        write::toml(&outline(self))
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        write::json(&outline(self))
    }
}

fn measurement(root: &Node, findings: &mut Findings) -> Option<Measurement> {
    let root = Item { node: root, path: FieldPath::root() };
    let fields = root.open("a table", findings)?;
    // A workload in its place has many fields that are unknown here, and one that is missing says it best.
    if fields.get("worst").is_none() {
        let message =
            "`worst` is missing, which every file of overheads has; write one with `laxity measure --out FILE`";
        fields.report_missing("worst", message, findings);
        return None;
    }
    let fields = root.table(FILE, "a table", findings)?;
    decode::format(&fields, findings);
    let worst = profile(&fields, "worst", findings);
    let average = profile(&fields, "average", findings);
    let machine = fields.get("machine").and_then(|item| machine(&item, findings)).unwrap_or_default();
    let quantities = fields.tables("quantity", findings);
    let quantities = quantities.iter().filter_map(|item| quantity(item, findings)).collect();
    Some(Measurement { machine, worst: worst?, average: average?, quantities })
}

fn profile(fields: &Fields<'_>, key: &'static str, findings: &mut Findings) -> Option<OverheadProfile> {
    let item = fields.require(key, &format!("`[{key}]` with overheads, as in `release = \"10 us\"`"), findings)?;
    let before = findings.list.len();
    let profile = decode::own_overheads(&item, findings)?;
    // What could not be read stands there as zero.
    if findings.list.len() == before {
        validate::overheads(&profile, &item.path, findings);
    }
    Some(profile)
}

fn machine(item: &Item<'_>, findings: &mut Findings) -> Option<MeasuredMachine> {
    let fields = item.table(MACHINE, "a table with `processor`", findings)?;
    let mut text = |key| fields.get(key).and_then(|item| item.text("text", findings)).unwrap_or_default().to_owned();
    let [processor, kernel, governor, scheduler, worst] =
        ["processor", "kernel", "governor", "scheduler", "worst"].map(&mut text);
    let cpus = fields.get("cpus").and_then(|item| item.list("a list of CPUs", findings)).unwrap_or_default();
    let cpu = |item: &Item<'_>| Some(CpuId(item.integer(0, u64::from(u16::MAX), findings)? as u16));
    let cpus = cpus.iter().filter_map(cpu).collect();
    let working_set = fields.get("working_set").and_then(|item| item.integer(0, i64::MAX as u64, findings));
    let duration = fields.get("measured_for").and_then(|item| item.span(findings));
    Some(MeasuredMachine {
        processor,
        kernel,
        governor,
        cpus,
        scheduler,
        worst,
        working_set: working_set.unwrap_or_default(),
        duration: duration.unwrap_or_default(),
    })
}

fn quantity(item: &Item<'_>, findings: &mut Findings) -> Option<MeasuredQuantity> {
    let fields = item.table(QUANTITY, "a table with `name` and `count`", findings)?;
    let name = fields.name(findings);
    let count = fields.require("count", "`count = 1000`", findings);
    let count = count.and_then(|item| item.integer(1, i64::MAX as u64, findings));
    let mut span = |key: &'static str| {
        fields.require(key, &format!("`{key} = \"5 us\"`"), findings).and_then(|item| item.span(findings))
    };
    let spans = ["min", "median", "mean", "p99", "p999", "max"].map(&mut span);
    let [Some(min), Some(median), Some(mean), Some(p99), Some(p999), Some(max)] = spans else { return None };
    let found = MeasuredQuantity { name, count: count?, min, median, mean, p99, p999, max };
    let ascends = [min, median, p99, p999, max].is_sorted() && (min..=max).contains(&mean);
    if !ascends {
        let message = "does not ascend from `min` over `median` (or `mean`), `p99` and `p999` to `max`; measure anew";
        item.report(ErrorKind::Contradiction, message, findings);
    }
    Some(found)
}

fn outline(measurement: &Measurement) -> Vec<(&'static str, Outline)> {
    let Measurement { machine, worst, average, quantities } = measurement;
    let cpus = machine.cpus.iter().map(|cpu| Integer(cpu.0.into())).collect();
    let machine = vec![
        ("processor", Text(machine.processor.clone())),
        ("kernel", Text(machine.kernel.clone())),
        ("governor", Text(machine.governor.clone())),
        ("cpus", List(cpus)),
        ("scheduler", Text(machine.scheduler.clone())),
        ("worst", Text(machine.worst.clone())),
        ("working_set", Integer(machine.working_set)),
        ("measured_for", span(machine.duration)),
    ];
    let quantity = |quantity: &MeasuredQuantity| {
        vec![
            ("name", Text(quantity.name.clone())),
            ("count", Integer(quantity.count)),
            ("min", span(quantity.min)),
            ("median", span(quantity.median)),
            ("mean", span(quantity.mean)),
            ("p99", span(quantity.p99)),
            ("p999", span(quantity.p999)),
            ("max", span(quantity.max)),
        ]
    };
    vec![
        ("laxity", Integer(FORMAT)),
        ("machine", Section(machine)),
        ("worst", Section(encode::own_overheads(worst))),
        ("average", Section(encode::own_overheads(average))),
        ("quantity", Sections(quantities.iter().map(quantity).collect())),
    ]
}

fn span(span: Nanos) -> Outline {
    Text(span.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OverheadCosts, OverheadTable, Statistic};

    fn measured() -> Measurement {
        let costs = OverheadCosts { release: Nanos(12_345), tick: Nanos(4_000), ..OverheadCosts::default() };
        let mut worst = OverheadProfile::constant("board-worst", costs);
        worst.tables[1] = OverheadTable::Points(vec![(10, 1_500), (20, 2_000_001)]);
        let average = OverheadCosts { release: Nanos(1_000), ..OverheadCosts::default() };
        let quantity = |name: &str, min| MeasuredQuantity {
            name: name.to_owned(),
            count: 17,
            min: Nanos(min),
            median: Nanos(min + 1),
            mean: Nanos(min + 2),
            p99: Nanos(min + 2),
            p999: Nanos(min + 2),
            max: Nanos(min + 3_600_000_000_000),
        };
        Measurement {
            machine: MeasuredMachine {
                processor: "a \"quoted\" processor".to_owned(),
                kernel: "6.18".to_owned(),
                governor: String::new(),
                cpus: vec![CpuId(0), CpuId(3)],
                scheduler: "SCHED_FIFO".to_owned(),
                worst: "max".to_owned(),
                working_set: 65_536,
                duration: Nanos::from_secs(30),
            },
            worst,
            average: OverheadProfile::constant("board-average", average),
            quantities: vec![quantity("timer_latency_idle", 900), quantity("clock", 0)],
        }
    }

    #[test]
    fn what_was_measured_is_read_back_exactly_from_toml_and_json() {
        let measured = measured();
        for text in [measured.to_toml(), measured.to_json()] {
            assert_eq!(Measurement::from_text(&text, "m").expect(&text), measured, "{text}");
        }
        assert_eq!(measured.profile(Statistic::Average).name, "board-average");
        assert_eq!(measured.quantity("clock").map(|clock| clock.min), Some(Nanos::ZERO));
        // A table that is copied from there is one of a workload.
        let table = measured.to_toml();
        let (_, worst) = table.split_once("[worst]").expect("a table");
        let (worst, _) = worst.split_once("\n[").expect("another table");
        let workload = format!(
            "laxity = 1\nname = \"w\"\n[platform]\ncpus = 1\n[platform.overheads]\n{worst}\n[scheduler]\npolicy = \"G-EDF\""
        );
        let workload = crate::Workload::from_toml(&workload, "w.toml").expect(&workload);
        assert_eq!(workload.platform.overheads, measured.worst);
    }

    #[test]
    fn mistakes_are_said_with_their_lines() {
        let text = measured().to_toml();
        let says = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Measurement::from_text(&text.replacen(from, to, 1), "m.toml").expect_err(to).to_string()
        };
        assert!(says("release = \"12.345 us\"", "release = \"2 h\"").contains("7200 s exceeds 1 h"));
        assert!(says("release = \"12.345 us\"", "relaese = \"2 us\"").contains("did you mean `release`?"));
        assert!(says("[average]", "[averga]").contains("`average` is missing"));
        assert!(says("count = 17", "count = 0").contains("from 1 to"));
        assert!(says("median = \"901 ns\"", "median = \"9 ns\"").contains("does not ascend"));
        assert!(says("laxity = 1", "laxity = 9").contains("m.toml:1"));
        let workload = "laxity = 1\nname = \"w\"\n[platform]\ncpus = 1\n";
        let error = Measurement::from_text(workload, "w.toml").expect_err("a workload").to_string();
        assert!(error.contains("laxity measure --out FILE") && error.lines().count() == 1, "{error}");
    }
}
