//! `laxity.live.Job`.

use std::sync::{Arc, Mutex, PoisonError};

use laxity_graph::{Job, MessageError, ObjectError};
use laxity_model::Instant;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice, PyType};

use super::claimed::{Claimed, State};
use super::edges::{self, Direction, EdgeOfNode};
use super::errors::{live_error, message_error};
use super::latest;
use super::message::Message;

/// A job that has its tokens, and room for what it produces. A context manager: it is complete at the end of `with`,
/// unless an exception leads there; then, as if it was never begun, the next wait has it again.
///
/// Messages and data objects are memoryviews of bytes in shared memory: nothing is copied. They end with the job. So
/// must all that was made of them: a job does not complete, but raises BufferError, while slices or numpy arrays show
/// its memory.
///
/// Edges are named by the node at their other end, or by their position in the graph.
#[pyclass(frozen, module = "laxity.live", name = "Job")]
pub struct PyJob {
    claimed: Arc<Claimed>,
    ticket: u64,
    index: u64,
    begun: Begun,
    /// The views that were handed out: they end with the job.
    views: Mutex<Vec<Py<PyMemoryView>>>,
}

/// What a job knows of itself from when it began.
#[derive(Clone, Copy)]
pub struct Begun {
    pub is_resumed: bool,
    pub release: Option<Instant>,
    pub deadline: Option<Instant>,
}

impl PyJob {
    pub fn new(claimed: Arc<Claimed>, ticket: u64, index: u64, begun: Begun) -> Self {
        PyJob { claimed, ticket, index, begun, views: Mutex::new(Vec::new()) }
    }

    /// What `of` finds on an edge of the node, as views.
    fn lend<'py>(
        &self,
        py: Python<'py>,
        direction: Direction,
        edge: &EdgeOfNode,
        of: impl FnOnce(&Arc<Claimed>, &mut State, usize) -> Result<Vec<Message>, MessageError>,
    ) -> PyResult<Vec<Bound<'py, PyMemoryView>>> {
        let messages = {
            let mut held = self.claimed.hold(py)?;
            let state = held.begun(py, self.ticket, self.index)?;
            let edge = edges::of_node(py, state.graph.spec(), state.node.position(), direction, edge)?;
            let found = of(&self.claimed, state, edge);
            found.map_err(|error| message_error(py, state.graph.spec(), edge, &error))?
        };
        messages.into_iter().map(|message| self.hand_out(py, message)).collect()
    }

    /// The data object that `of` finds.
    fn lend_object<'py>(
        &self,
        py: Python<'py>,
        of: impl FnOnce(&mut Job<'_>) -> Result<Message, ObjectError>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let object = {
            let mut held = self.claimed.hold(py)?;
            let mut job = held.begun(py, self.ticket, self.index)?.node.job().ok_or_else(nothing)?;
            of(&mut job).map_err(|error| live_error(py, &error))?
        };
        self.hand_out(py, object)
    }

    /// A view of `message`, which ends with the job.
    fn hand_out<'py>(&self, py: Python<'py>, message: Message) -> PyResult<Bound<'py, PyMemoryView>> {
        let view = PyMemoryView::from(Bound::new(py, message)?.as_any())?;
        self.handed_out().push(view.clone().unbind());
        Ok(view)
    }

    fn handed_out(&self) -> std::sync::MutexGuard<'_, Vec<Py<PyMemoryView>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the views that were handed out; those that numpy or other views look through stay.
    fn end_views(&self, py: Python<'_>) -> PyResult<()> {
        let views = std::mem::take(&mut *self.handed_out());
        for view in views {
            match view.bind(py).call_method0("release") {
                Ok(_) => {}
                Err(error) if error.is_instance_of::<PyBufferError>(py) => self.handed_out().push(view),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Messages of the job that is begun, and their number on an edge.
fn inputs(
    claimed: &Arc<Claimed>,
    state: &mut State,
    edge: usize,
    numbers: Numbers,
) -> Result<Vec<Message>, MessageError> {
    let numbers = numbers.range(state.graph.spec().plan().edges()[edge].threshold);
    let Some(mut job) = state.node.job() else { return Ok(Vec::new()) };
    numbers.map(|number| job.input(edge, number).map(|bytes| Message::input(claimed, bytes))).collect()
}

fn outputs(
    claimed: &Arc<Claimed>,
    state: &mut State,
    edge: usize,
    numbers: Numbers,
) -> Result<Vec<Message>, MessageError> {
    let numbers = numbers.range(state.graph.spec().plan().edges()[edge].produce);
    let Some(mut job) = state.node.job() else { return Ok(Vec::new()) };
    numbers.map(|number| job.output(edge, number).map(|bytes| Message::output(claimed, bytes))).collect()
}

/// Which of the messages on an edge.
#[derive(Clone, Copy)]
enum Numbers {
    One(u32),
    All,
}

impl Numbers {
    fn range(self, count: u32) -> std::ops::Range<u32> {
        match self {
            // The graph itself says what there is.
            Numbers::One(number) => number..number.saturating_add(1),
            Numbers::All => 0..count,
        }
    }
}

#[pymethods]
impl PyJob {
    /// Its number, from 0.
    #[getter]
    fn index(&self) -> u64 {
        self.index
    }

    /// Whether a former owner of the node had begun it: what that one did outside the graph may be done already.
    #[getter]
    fn is_resumed(&self) -> bool {
        self.begun.is_resumed
    }

    /// What its deadline is counted from, in ns of `time.monotonic_ns`: when the last of its tokens came, or its
    /// source's time, but no sooner than a period after the release before. After now if it was released early; None if
    /// the graph remembers no jobs.
    #[getter]
    fn release_ns(&self) -> Option<u64> {
        self.begun.release.map(|release| release.0)
    }

    /// When it should be complete, in ns of `time.monotonic_ns`: its release and the node's relative deadline. None if
    /// the graph remembers no jobs.
    #[getter]
    fn deadline_ns(&self) -> Option<u64> {
        self.begun.deadline.map(|deadline| deadline.0)
    }

    /// A message that came over `edge`, in place: a read-only memoryview of bytes, shape (length,); empty if the
    /// producer wrote none, all zeros if its token was there at the start.
    ///
    /// Args:
    ///     edge: its producer, or its position.
    ///     number: which one, 0 being the oldest; there are as many as the threshold of the edge.
    ///
    /// Raises UnknownError for an edge that does not lead here, MessageError for a message that is not there.
    #[pyo3(signature = (edge, number=0))]
    fn input<'py>(&self, py: Python<'py>, edge: EdgeOfNode, number: u32) -> PyResult<Bound<'py, PyMemoryView>> {
        let of = |claimed: &_, state: &mut State, edge| inputs(claimed, state, edge, Numbers::One(number));
        self.lend(py, Direction::In, &edge, of)?.pop().ok_or_else(nothing)
    }

    /// All messages that came over `edge`, the oldest first; otherwise as `input`.
    fn inputs<'py>(&self, py: Python<'py>, edge: EdgeOfNode) -> PyResult<Vec<Bound<'py, PyMemoryView>>> {
        self.lend(py, Direction::In, &edge, |claimed, state, edge| inputs(claimed, state, edge, Numbers::All))
    }

    /// A message that goes over `edge`, to be written in place: a memoryview of bytes, shape (longest,), with whatever
    /// was in it before. It is sent as long as that, unless `truncate` says less; one that is never asked for is sent
    /// empty.
    ///
    /// Args:
    ///     edge: its consumer, or its position.
    ///     number: which one, 0 being the oldest; there are as many as a job produces.
    ///
    /// Raises UnknownError for an edge that does not begin here, MessageError for a message that is not there.
    #[pyo3(signature = (edge, number=0))]
    fn output<'py>(&self, py: Python<'py>, edge: EdgeOfNode, number: u32) -> PyResult<Bound<'py, PyMemoryView>> {
        let of = |claimed: &_, state: &mut State, edge| outputs(claimed, state, edge, Numbers::One(number));
        self.lend(py, Direction::Out, &edge, of)?.pop().ok_or_else(nothing)
    }

    /// All messages that go over `edge`, the oldest first; otherwise as `output`.
    fn outputs<'py>(&self, py: Python<'py>, edge: EdgeOfNode) -> PyResult<Vec<Bound<'py, PyMemoryView>>> {
        self.lend(py, Direction::Out, &edge, |claimed, state, edge| outputs(claimed, state, edge, Numbers::All))
    }

    /// Sends the first `length` bytes of a message only.
    ///
    /// Raises MessageError if that is more than fits.
    #[pyo3(signature = (edge, length, number=0))]
    fn truncate(&self, py: Python<'_>, edge: EdgeOfNode, length: usize, number: u32) -> PyResult<()> {
        self.lend(py, Direction::Out, &edge, |_, state, edge| {
            let Some(mut job) = state.node.job() else { return Ok(Vec::new()) };
            job.messages().1.truncate(edge, number, length).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Copies `data`, bytes or anything else in contiguous memory, into a message that goes over `edge`, as long as it.
    ///
    /// It is there for the consumer once the job is complete.
    ///
    /// Raises MessageError if it does not fit.
    #[pyo3(signature = (edge, data, number=0))]
    fn send(&self, py: Python<'_>, edge: EdgeOfNode, data: &Bound<'_, PyAny>, number: u32) -> PyResult<()> {
        let bytes = PyMemoryView::from(data)?.call_method1("cast", ("B",))?;
        let length = bytes.len()?;
        // If it does not fit nothing is written.
        self.truncate(py, edge.clone(), length, number)?;
        let message = self.output(py, edge.clone(), number)?;
        let end = isize::try_from(length).map_err(|_| PyBufferError::new_err("longer than any memory"))?;
        message.set_item(PySlice::new(py, 0, end, 1), bytes)?;
        message.call_method0("release")?;
        self.truncate(py, edge, length, number)
    }

    /// What the newest complete job of `producer` wrote over the latest-value edge from it, as it was when this job began:
    /// a read-only memoryview of bytes, in place, and the number of the job that wrote it; None if none was complete then.
    ///
    /// Raises UnknownError if there is no such edge.
    fn latest<'py>(&self, py: Python<'py>, producer: &str) -> PyResult<Option<(Bound<'py, PyMemoryView>, u64)>> {
        let found = {
            let mut held = self.claimed.hold(py)?;
            let state = held.begun(py, self.ticket, self.index)?;
            let edge = latest::position(py, state, producer, true)?;
            latest::read(py, &self.claimed, state, edge)?
        };
        found.map(|(value, job)| Ok((self.hand_out(py, value)?, job))).transpose()
    }

    /// What this job writes over the latest-value edge to `consumer`, to be written in place: a memoryview of bytes, with
    /// whatever was in it before. It is the newest value when the job completes; a value that is never asked for is empty.
    ///
    /// Args:
    ///     consumer: the node that reads it.
    ///     length: how many bytes it has; None: as many as can be.
    ///
    /// Raises UnknownError if there is no such edge, MessageError for a value that does not fit.
    #[pyo3(signature = (consumer, length=None))]
    fn latest_output<'py>(
        &self,
        py: Python<'py>,
        consumer: &str,
        length: Option<usize>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let made = {
            let mut held = self.claimed.hold(py)?;
            let state = held.begun(py, self.ticket, self.index)?;
            let edge = latest::position(py, state, consumer, false)?;
            latest::write(py, &self.claimed, state, edge, length)?
        };
        let view = self.hand_out(py, made.ok_or_else(nothing)?)?;
        Ok(view)
    }

    /// Copies `data`, bytes or anything else in contiguous memory, to the latest-value edge to `consumer`.
    ///
    /// Raises UnknownError if there is no such edge, MessageError if it does not fit.
    fn write_latest(&self, py: Python<'_>, consumer: &str, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = PyMemoryView::from(data)?.call_method1("cast", ("B",))?;
        let length = bytes.len()?;
        let value = self.latest_output(py, consumer, Some(length))?;
        let end = isize::try_from(length).map_err(|_| PyBufferError::new_err("longer than any memory"))?;
        value.set_item(PySlice::new(py, 0, end, 1), bytes)?;
        value.call_method0("release")?;
        Ok(())
    }

    /// A data object that the node reads, in place: a read-only memoryview of bytes, shape (size,).
    ///
    /// Args:
    ///     object: its name.
    ///
    /// Raises UnknownError if there is no such object, AccessError if the node does not declare that it reads it.
    fn read<'py>(&self, py: Python<'py>, object: &str) -> PyResult<Bound<'py, PyMemoryView>> {
        self.read_past(py, object, 0)
    }

    /// What was in the delay `object` so many jobs `ago`; otherwise as `read`.
    fn read_past<'py>(&self, py: Python<'py>, object: &str, ago: u32) -> PyResult<Bound<'py, PyMemoryView>> {
        let claimed = &self.claimed;
        self.lend_object(py, |job| job.read_past(object, ago).map(|bytes| Message::input(claimed, bytes)))
    }

    /// A data object that the node writes or changes, in place: a memoryview of bytes, shape (size,). An object that
    /// the node only writes has its former contents.
    ///
    /// Args:
    ///     object: its name.
    ///
    /// Raises UnknownError if there is no such object, AccessError if the node does not declare that it writes it.
    fn write<'py>(&self, py: Python<'py>, object: &str) -> PyResult<Bound<'py, PyMemoryView>> {
        let claimed = &self.claimed;
        self.lend_object(py, |job| job.write(object).map(|bytes| Message::output(claimed, bytes)))
    }

    /// Swaps a message that came over the edge `input` with one that goes over the edge `output`, each with its length and
    /// without a copy, however long they are: what came is what goes. The edges exchange buffers: `Spec.with_swapping`.
    ///
    /// The memoryviews that the job handed out end. `output(output)` then is the message that came, to be changed in place,
    /// as long as can be, until `truncate` says less. If the process is killed before the job is complete it is begun
    /// again with the message where it came from, and what was changed in it may be half changed: `is_resumed`.
    ///
    /// Args:
    ///     input: the node that the message came from, or the edge's position.
    ///     output: the node that it goes to, or the edge's position.
    ///     input_number: which of the messages that the job takes away, from 0.
    ///     output_number: which of those that it adds.
    ///
    /// Raises MessageError if the edges exchange no buffers or the job leaves the message for the next one, UnknownError
    /// for an edge that there is not, BufferError while messages are in use by numpy arrays or other views.
    #[pyo3(signature = (input, output, input_number=0, output_number=0))]
    fn swap(
        &self,
        py: Python<'_>,
        input: EdgeOfNode,
        output: EdgeOfNode,
        input_number: u32,
        output_number: u32,
    ) -> PyResult<()> {
        let mut held = self.claimed.hold(py)?;
        let state = held.begun(py, self.ticket, self.index)?;
        let (spec, node) = (state.graph.spec(), state.node.position());
        let from = edges::of_node(py, spec, node, Direction::In, &input)?;
        let to = edges::of_node(py, spec, node, Direction::Out, &output)?;
        self.end_views(py)?;
        held.check_views("swap messages")?;
        let state = held.begun(py, self.ticket, self.index)?;
        let mut job = state.node.job().ok_or_else(nothing)?;
        let swapped = job.swap((from, input_number), (to, output_number));
        swapped.map_err(|error| message_error(py, state.graph.spec(), at_fault(&error, from, to), &error))?;
        held.moved();
        Ok(())
    }

    /// Completes the job: what it read is gone; what it wrote and its tokens are there for its consumers, all at once.
    ///
    /// Raises BufferError while its messages or data objects are in use by more than the memoryviews that it handed out itself, such as
    /// numpy arrays; it is not complete then.
    fn complete(&self, py: Python<'_>) -> PyResult<()> {
        let mut held = self.claimed.hold(py)?;
        held.begun(py, self.ticket, self.index)?;
        self.end_views(py)?;
        held.check_views("complete the job")?;
        held.complete();
        Ok(())
    }

    fn __enter__<'py>(slf: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let job = slf.get();
        job.claimed.hold(py)?.begun(py, job.ticket, job.index)?;
        Ok(slf)
    }

    /// Completes the job, if that is not done, or with an exception gives it back to the node.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() {
            // Not ended: code that handles the exception may look at them.
            self.handed_out().clear();
            self.claimed.abandon(self.ticket);
            return Ok(());
        }
        let is_over = self.claimed.is_released() || self.claimed.hold(py)?.state().ticket != Some(self.ticket);
        if is_over { Ok(()) } else { self.complete(py) }
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Job {} of node \"{}\">", self.index, self.claimed.name)
    }
}

impl Drop for PyJob {
    fn drop(&mut self) {
        self.claimed.abandon(self.ticket);
    }
}

/// The edge that an error of a swap is about.
fn at_fault(error: &MessageError, from: usize, to: usize) -> usize {
    match *error {
        MessageError::NoMessage { edge, .. } if edge == to => to,
        _ => from,
    }
}

/// A job that is begun has what the rule of its edges says.
fn nothing() -> PyErr {
    PyBufferError::new_err("the job is over; wait for the next")
}
