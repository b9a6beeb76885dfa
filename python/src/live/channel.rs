//! What an edge carries, as `laxity.live.Counter`, `Ring` ... say it. Another kind is another arm in each function
//! here, and a class in `laxity/live/_describe.py`.

use std::net::SocketAddr;

use laxity_graph::Channel;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::errors::spec_error;

/// What `channel`, one of the classes of Python, says about `edge`.
pub fn read(channel: &Bound<'_, PyAny>, edge: &str) -> PyResult<Channel> {
    let py = channel.py();
    let kind = channel.get_type().name()?;
    let size = |field| number(channel, field, edge);
    match kind.to_str()? {
        "Counter" => Ok(Channel::Counter),
        "Ring" => Ok(Channel::Ring { message: size("message")?, capacity: size("capacity")? }),
        "Fifo" => Ok(Channel::Fifo { message: size("message")?, capacity: size("capacity")? }),
        "Queue" => Ok(Channel::Queue { message: size("message")?, capacity: size("capacity")? }),
        "Stream" => Ok(Channel::Stream {
            message: size("message")?,
            capacity: size("capacity")?,
            address: address(channel, edge)?,
        }),
        kind => {
            let text = format!("edge {edge}: no channel is a {kind}; use Counter, Ring, Fifo, Queue or Stream");
            Err(spec_error(py, &text))
        }
    }
}

/// `channel` as one of the classes of Python.
pub fn write<'py>(py: Python<'py>, channel: &Channel) -> PyResult<Bound<'py, PyAny>> {
    let class = match channel {
        Channel::Counter => "Counter",
        Channel::Ring { .. } => "Ring",
        Channel::Fifo { .. } => "Fifo",
        Channel::Queue { .. } => "Queue",
        Channel::Stream { .. } => "Stream",
    };
    let fields = PyDict::new(py);
    for (name, size) in [("message", channel.message()), ("capacity", channel.capacity())] {
        size.map(|size| fields.set_item(name, size)).transpose()?;
    }
    if let Channel::Stream { address, .. } = channel {
        fields.set_item("address", address.to_string())?;
    }
    py.import("laxity.live._describe")?.getattr(class)?.call((), Some(&fields))
}

/// Where the consumer of `edge` listens.
fn address(channel: &Bound<'_, PyAny>, edge: &str) -> PyResult<SocketAddr> {
    let value = channel.getattr("address")?;
    let read = value.extract::<String>().ok().and_then(|text| text.parse().ok());
    read.ok_or_else(|| {
        let way = "write one like 127.0.0.1:4000 or [::1]:4000, with port 0 for any";
        spec_error(channel.py(), &format!("edge {edge}: {value} is no address; {way}"))
    })
}

/// The field `field` of what describes `edge`, or its channel: a number of 32 bits.
pub fn number(description: &Bound<'_, PyAny>, field: &str, edge: &str) -> PyResult<u32> {
    let value = description.getattr(field)?;
    let error = |_| format!("edge {edge}: {field} is {value}; use a whole number from 0 to {}", u32::MAX);
    value.extract().map_err(error).map_err(|text| spec_error(description.py(), &text))
}
