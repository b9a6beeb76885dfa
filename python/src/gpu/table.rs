//! A snapshot as a table.

use std::collections::HashMap;

use arrow_array::{StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use laxity_gpu::{Base, ClientState, LockState, Snapshot, Standing};
use laxity_model::{ReplicaId, TaskId};
use pyo3::prelude::*;

use crate::arrow::{self, Columns};

/// One row.
#[derive(Clone, Default)]
struct Row {
    gpu: Option<u16>,
    lock: Option<&'static str>,
    token: Option<u16>,
    state: &'static str,
    position: Option<u32>,
    client: Option<TaskId>,
    donee: Option<TaskId>,
}

/// What `laxity.gpu.look` says.
pub fn rows<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyAny>> {
    let mut rows = Vec::new();
    for gpu in 0..snapshot.config.gpus {
        tokens(snapshot, gpu, &mut rows);
        for (engine, lock) in snapshot.config.engines().iter().zip(&snapshot.engines[usize::from(gpu)]) {
            let place = Row { gpu: Some(gpu), lock: Some(engine.name()), ..Row::default() };
            add(&place, lock, 0, Standing::Queue, &mut rows);
        }
    }
    outside(snapshot, &mut rows);
    let busy: Vec<TaskId> = rows.iter().filter_map(|row| row.client).collect();
    let idle = snapshot.clients.iter().filter(|client| !busy.contains(&client.id));
    rows.extend(idle.map(|client| Row { state: "idle", client: Some(client.id), ..Row::default() }));
    arrow::table(py, batch(snapshot, &rows)?)
}

/// Token `r` belongs to GPU `r` modulo the GPUs.
fn tokens(snapshot: &Snapshot, gpu: u16, rows: &mut Vec<Row>) {
    let all = snapshot.tokens.holders.len();
    for token in (usize::from(gpu)..all).step_by(snapshot.config.gpus.into()) {
        let replica = token as u16;
        let place = Row { gpu: Some(gpu), lock: Some("token"), token: Some(replica), ..Row::default() };
        add(&place, &snapshot.tokens, token, Standing::Fifo(ReplicaId(replica)), rows);
    }
}

/// The holder of a replica, and those in its queue.
fn add(place: &Row, lock: &LockState, replica: usize, queue: Standing, rows: &mut Vec<Row>) {
    let client = lock.holders.get(replica).copied().flatten();
    rows.push(Row { state: if client.is_some() { "holds" } else { "free" }, client, ..place.clone() });
    let waiting = lock.waiting.iter().filter(|(_, standing)| *standing == queue);
    rows.extend(waiting.zip(1..).map(|(&(client, _), position)| Row {
        state: "waits",
        position: Some(position),
        client: Some(client),
        ..place.clone()
    }));
}

/// The clients for which no queue of a token has room.
fn outside(snapshot: &Snapshot, rows: &mut Vec<Row>) {
    for &(client, standing) in &snapshot.tokens.waiting {
        let (state, donee) = match standing {
            Standing::Outside => ("outside", None),
            Standing::Donor { donee } => ("donates", Some(donee)),
            // The k-FMLP has one queue for all GPUs; it says so by no GPU.
            Standing::Queue => ("waits", None),
            Standing::Fifo(_) => continue,
        };
        rows.push(Row { lock: Some("token"), state, client: Some(client), donee, ..Row::default() });
    }
    let mut position = 0;
    for row in rows.iter_mut().filter(|row| row.gpu.is_none() && row.state == "waits") {
        position += 1;
        row.position = Some(position);
    }
}

fn batch(snapshot: &Snapshot, rows: &[Row]) -> PyResult<arrow_array::RecordBatch> {
    let client = |row: &Row| row.client.and_then(|id| snapshot.client(id));
    let number = |task: Option<TaskId>| task.map(|task| task.0);
    let fixed = |base: Base| if let Base::Fixed(priority) = base { Some(priority) } else { None };
    let due = |base: Base| if let Base::Deadline(deadline) = base { Some(deadline.0) } else { None };
    let mut columns = Columns::default();
    columns.push("gpu", UInt16Array::from_iter(rows.iter().map(|row| row.gpu)), true);
    columns.push("lock", StringArray::from_iter(rows.iter().map(|row| row.lock)), true);
    columns.push("token", UInt16Array::from_iter(rows.iter().map(|row| row.token)), true);
    columns.push("state", StringArray::from_iter_values(rows.iter().map(|row| row.state)), false);
    columns.push("position", UInt32Array::from_iter(rows.iter().map(|row| row.position)), true);
    columns.push("client", UInt32Array::from_iter(rows.iter().map(|row| number(row.client))), true);
    let names = rows.iter().map(|row| client(row).map(|client| client.name.as_str()));
    columns.push("name", StringArray::from_iter(names), true);
    let mut number_of = |name: &str, of: &dyn Fn(&ClientState) -> Option<u32>| {
        columns.push(name, UInt32Array::from_iter(rows.iter().map(|row| client(row).and_then(of))), true);
    };
    number_of("pid", &|client| Some(client.pid));
    number_of("thread", &|client| Some(client.thread));
    number_of("inherits_from", &|client| number(client.inherits_from));
    let mut urgency = |prefix: &str, of: &dyn Fn(&ClientState) -> Base| {
        let bases: Vec<Option<Base>> = rows.iter().map(|row| client(row).map(of)).collect();
        let priorities = bases.iter().map(|base| base.and_then(fixed));
        columns.push(format!("{prefix}priority"), UInt8Array::from_iter(priorities), true);
        let deadlines = bases.iter().map(|base| base.and_then(due));
        columns.push(format!("{prefix}deadline_ns"), UInt64Array::from_iter(deadlines), true);
    };
    urgency("", &|client| client.base);
    urgency("effective_", &|client| client.effective);
    columns.push("donee", UInt32Array::from_iter(rows.iter().map(|row| number(row.donee))), true);
    columns.batch(HashMap::from([("arbitration".to_owned(), snapshot.name.clone())]))
}
