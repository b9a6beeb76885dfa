//! Reading the test data.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod simulator;

use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use laxity_analysis::{AnalysisTask, Rational, TaskSet, rational};
use serde_json::Value;

/// The worked examples.
pub fn vectors() -> Value {
    serde_json::from_str(include_str!("../data/vectors.json")).expect("the vectors are JSON")
}

/// The lines of a compressed JSON-lines file.
pub fn lines(compressed: &'static [u8]) -> impl Iterator<Item = Value> {
    BufReader::new(GzDecoder::new(compressed))
        .lines()
        .map(|line| serde_json::from_str(&line.expect("the file is gzip")).expect("every line is JSON"))
}

/// The task set of an object with `m` and `tasks = [[C, T, D], ...]`.
pub fn task_set(value: &Value) -> TaskSet {
    let tasks = array(&value["tasks"]).iter().map(task).collect();
    TaskSet::new(integer(&value["m"]) as u32, tasks).expect("the data are within limits")
}

/// A task written `[C, T, D]`.
pub fn task(value: &Value) -> AnalysisTask {
    AnalysisTask::new(integer(&value[0]), integer(&value[1]), integer(&value[2]))
}

/// A set written in a test.
pub fn set(cpus: u32, tasks: &[(u64, u64, u64)]) -> TaskSet {
    let tasks = tasks.iter().map(|&(c, t, d)| AnalysisTask::new(c, t, d)).collect();
    TaskSet::new(cpus, tasks).expect("the test's set is valid")
}

pub fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("an array expected, not {value}"))
}

pub fn integer(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("an unsigned integer expected, not {value}"))
}

pub fn integers(value: &Value) -> Vec<u64> {
    array(value).iter().map(integer).collect()
}

pub fn boolean(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| panic!("true or false expected, not {value}"))
}

/// A number, or a fraction or decimal in a string.
pub fn fraction(value: &Value) -> Rational {
    if let Some(number) = value.as_i64() {
        return rational(number, 1);
    }
    let text = value.as_str().unwrap_or_else(|| panic!("a fraction expected, not {value}"));
    parse_fraction(text)
}

pub fn parse_fraction(text: &str) -> Rational {
    if let Some((numerator, denominator)) = text.split_once('/') {
        return rational(numerator.parse::<i128>().unwrap(), denominator.parse::<i128>().unwrap());
    }
    match text.split_once('.') {
        None => rational(text.parse::<i128>().unwrap(), 1),
        Some((whole, decimals)) => {
            let digits: i128 = format!("{whole}{decimals}").parse().unwrap();
            rational(digits, 10i128.pow(decimals.len() as u32))
        }
    }
}

pub fn fractions(value: &Value) -> Vec<Rational> {
    array(value).iter().map(fraction).collect()
}
