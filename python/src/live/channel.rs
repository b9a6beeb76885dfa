//! What an edge carries, as `laxity.live.Counter`, `Ring` ... say it. Another kind is another arm in each function
//! here, and a class in `laxity/live/_describe.py`.

use laxity_graph::Channel;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::errors::spec_error;

/// What `channel`, one of the classes of Python, says about `edge`.
pub fn read(channel: &Bound<'_, PyAny>, edge: &str) -> PyResult<Channel> {
    let py = channel.py();
    let kind = channel.get_type().name()?;
    match kind.to_str()? {
        "Counter" => Ok(Channel::Counter),
        "Ring" => Ok(Channel::Ring {
            message: number(channel, "message", edge)?,
            capacity: number(channel, "capacity", edge)?,
        }),
        kind => {
            Err(spec_error(py, &format!("edge {edge}: no channel is a {kind}; use live.Counter() or live.Ring(...)")))
        }
    }
}

/// `channel` as one of the classes of Python.
pub fn write<'py>(py: Python<'py>, channel: &Channel) -> PyResult<Bound<'py, PyAny>> {
    let described = py.import("laxity.live._describe")?;
    match *channel {
        Channel::Counter => described.getattr("Counter")?.call0(),
        Channel::Ring { message, capacity } => {
            let fields = PyDict::new(py);
            fields.set_item("message", message)?;
            fields.set_item("capacity", capacity)?;
            described.getattr("Ring")?.call((), Some(&fields))
        }
    }
}

/// The field `field` of what describes `edge`, or its channel: a number of 32 bits.
pub fn number(description: &Bound<'_, PyAny>, field: &str, edge: &str) -> PyResult<u32> {
    let value = description.getattr(field)?;
    let error = |_| format!("edge {edge}: {field} is {value}; use a whole number from 0 to {}", u32::MAX);
    value.extract().map_err(error).map_err(|text| spec_error(description.py(), &text))
}
