//! The results of functions.

use std::ffi::{CStr, c_char};

use laxity_model::ErrorCode;

/// The result of a call. The numbers never change; later versions may add some.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_result {
    /// The call succeeded.
    LAXITY_OK = 0,

    /// The wait timed out. It may be repeated.
    LAXITY_TIMED_OUT = 1,
    /// A wait: a producer of this node has ended and all its output is consumed, or this node was ended.
    LAXITY_TERMINATED = 2,
    /// A wait: a node that this one depends on was lost, with its process or in the middle of a job. Returned once for
    /// each loss; the next wait lasts until the node is claimed again and goes on.
    LAXITY_LOST = 3,
    /// A conditional write of user data: another write came first. Nothing was written.
    LAXITY_CHANGED = 4,

    /// An argument is NULL and must not be.
    LAXITY_ERROR_NULL = 10,
    /// The pointer is no handle, or one that is released or of another type.
    LAXITY_ERROR_HANDLE = 11,
    /// A text is not UTF-8.
    LAXITY_ERROR_TEXT = 12,
    /// Another thread is using the node, or waits for its next job; or the workload runs.
    LAXITY_ERROR_BUSY = 13,
    /// An argument is outside its range.
    LAXITY_ERROR_VALUE = 14,

    /// The graph cannot be carried out: a rate, a period, a name, a ring that is too small.
    LAXITY_ERROR_SPEC = 20,
    /// The name is empty, too long, or has a character that names cannot have.
    LAXITY_ERROR_NAME = 21,
    /// A graph that is in use has the name.
    LAXITY_ERROR_EXISTS = 22,
    /// There is no such graph.
    LAXITY_ERROR_NO_GRAPH = 23,
    /// The graph of that name is a different one.
    LAXITY_ERROR_DIFFERENT = 24,
    /// The name belongs to something that is no graph of this version of Laxity.
    LAXITY_ERROR_FOREIGN = 25,
    /// No room is left for another process, or task.
    LAXITY_ERROR_FULL = 26,
    /// There is not enough shared memory.
    LAXITY_ERROR_MEMORY = 27,
    /// Linux refuses.
    LAXITY_ERROR_SYSTEM = 28,
    /// An edge cannot have its channel: it would hold more than Linux grants, or its name belongs to something else.
    LAXITY_ERROR_CHANNEL = 29,

    /// The graph has no such node.
    LAXITY_ERROR_NO_NODE = 30,
    /// The graph has no such edge.
    LAXITY_ERROR_NO_EDGE = 31,
    /// The node is claimed, or every node is.
    LAXITY_ERROR_CLAIMED = 32,
    /// The node's owner was killed but has not ended yet. Try again.
    LAXITY_ERROR_ENDING = 33,
    /// This process was forked from the one that attached, or that made the handle. Attach here, and make one.
    LAXITY_ERROR_FORKED = 34,
    /// The graph has no such data object.
    LAXITY_ERROR_NO_OBJECT = 35,
    /// A claim: the node cannot listen at the address of an edge, for instance because another program has the port.
    LAXITY_ERROR_LISTEN = 36,
    /// A wait: the node that listens for this node's messages cannot be reached. The wait may be repeated.
    LAXITY_ERROR_UNREACHABLE = 37,
    /// Linux refuses the scheduling parameters; the thread is scheduled as before.
    LAXITY_ERROR_SCHEDULE = 38,

    /// The job is complete, or none was begun.
    LAXITY_ERROR_NO_JOB = 40,
    /// A wait before the current job is complete.
    LAXITY_ERROR_INCOMPLETE = 41,
    /// The edge carries no messages at this node, or leads the other way.
    LAXITY_ERROR_NO_RING = 42,
    /// The job has fewer messages.
    LAXITY_ERROR_NO_MESSAGE = 43,
    /// A message is longer than the edge's longest.
    LAXITY_ERROR_TOO_LONG = 44,
    /// The node did not declare this use of the data object.
    LAXITY_ERROR_ACCESS = 45,
    /// A message in a channel of Linux was lost with a former owner of a node that was killed or released. The job goes
    /// on without it.
    LAXITY_ERROR_MESSAGE_LOST = 46,
    /// The graph has no recorder: it has no releases, and cannot be traced.
    LAXITY_ERROR_NO_RECORDER = 47,
    /// A trace file cannot be written.
    LAXITY_ERROR_FILE = 48,

    /// Messages of these edges cannot be swapped at this node, or the job leaves the message for the next job.
    LAXITY_ERROR_SWAP = 49,

    /// The configuration is invalid: a number is outside its range, or the arbitration cannot run live.
    LAXITY_ERROR_CONFIG = 50,
    /// There is no such arbitration.
    LAXITY_ERROR_NO_ARBITRATION = 51,
    /// A thread's name or priority is invalid.
    LAXITY_ERROR_CLIENT = 52,
    /// There is no such GPU, or a copy is from a GPU to itself.
    LAXITY_ERROR_NO_GPU = 53,
    /// There is no such engine, or it copies nothing.
    LAXITY_ERROR_NO_ENGINE = 54,
    /// The thread holds this lock or a later one: tokens come first, then engines in the order of GPUs. Or a task has no
    /// job for the call, or has one already.
    LAXITY_ERROR_ORDER = 55,
    /// The thread holds no token.
    LAXITY_ERROR_NO_TOKEN = 56,
    /// Another thread registered the client, became the task, or runs the job's kernel.
    LAXITY_ERROR_THREAD = 57,

    /// A soft GPU cannot be opened: its server cannot be started, or is of another version or user.
    LAXITY_ERROR_NO_SOFT_GPU = 60,
    /// The server of a soft GPU ended: pending operations do not happen, and device memory is lost. Open it again.
    LAXITY_ERROR_GONE = 61,
    /// Bytes outside the buffer.
    LAXITY_ERROR_RANGE = 62,
    /// Two operations use the same bytes of device memory at the same time, and one writes.
    LAXITY_ERROR_RACE = 63,
    /// The buffer belongs to another device, or is in the memory of another GPU than the job's.
    LAXITY_ERROR_BUFFER = 64,
    /// A GPU kernel failed; the details have its number.
    LAXITY_ERROR_KERNEL = 65,
    /// A GPU kernel cannot issue operations, and a kernel of a vision graph cannot wait for its own run, nor release it.
    LAXITY_ERROR_INSIDE = 66,
    /// The budget of the job is exhausted, and its token is released. Go on when it is replenished.
    LAXITY_ERROR_EXHAUSTED = 67,

    /// A vision graph cannot be executed.
    LAXITY_ERROR_VERIFY = 70,
    /// A node of a vision graph has failed, and the graph has stopped.
    LAXITY_ERROR_FAILED = 71,

    /// No system of scheduled tasks has the name.
    LAXITY_ERROR_NO_SYSTEM = 80,

    /// A workload file is wrong, or cannot be run on this machine.
    LAXITY_ERROR_WORKLOAD = 85,
    /// The workload has no such task.
    LAXITY_ERROR_NO_TASK = 86,
    /// A function that jobs call failed or crashed, and the run has ended.
    LAXITY_ERROR_CODE = 87,

    /// A fault in Laxity. The process may go on, but please report it.
    LAXITY_ERROR_INTERNAL = 99,
}

use laxity_result::*;

impl From<ErrorCode> for laxity_result {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::TimedOut => LAXITY_TIMED_OUT,
            ErrorCode::Terminated => LAXITY_TERMINATED,
            ErrorCode::Lost => LAXITY_LOST,
            ErrorCode::Value => LAXITY_ERROR_VALUE,
            ErrorCode::Spec => LAXITY_ERROR_SPEC,
            ErrorCode::Name => LAXITY_ERROR_NAME,
            ErrorCode::Exists => LAXITY_ERROR_EXISTS,
            ErrorCode::NoGraph => LAXITY_ERROR_NO_GRAPH,
            ErrorCode::Different => LAXITY_ERROR_DIFFERENT,
            ErrorCode::Foreign => LAXITY_ERROR_FOREIGN,
            ErrorCode::Full => LAXITY_ERROR_FULL,
            ErrorCode::Memory => LAXITY_ERROR_MEMORY,
            ErrorCode::System => LAXITY_ERROR_SYSTEM,
            ErrorCode::Channel => LAXITY_ERROR_CHANNEL,
            ErrorCode::NoNode => LAXITY_ERROR_NO_NODE,
            ErrorCode::Claimed => LAXITY_ERROR_CLAIMED,
            ErrorCode::Ending => LAXITY_ERROR_ENDING,
            ErrorCode::Forked => LAXITY_ERROR_FORKED,
            ErrorCode::NoObject => LAXITY_ERROR_NO_OBJECT,
            ErrorCode::Listen => LAXITY_ERROR_LISTEN,
            ErrorCode::Unreachable => LAXITY_ERROR_UNREACHABLE,
            ErrorCode::Schedule => LAXITY_ERROR_SCHEDULE,
            ErrorCode::NoRing => LAXITY_ERROR_NO_RING,
            ErrorCode::NoMessage => LAXITY_ERROR_NO_MESSAGE,
            ErrorCode::TooLong => LAXITY_ERROR_TOO_LONG,
            ErrorCode::Access => LAXITY_ERROR_ACCESS,
            ErrorCode::MessageLost => LAXITY_ERROR_MESSAGE_LOST,
            ErrorCode::NoRecorder => LAXITY_ERROR_NO_RECORDER,
            ErrorCode::Swap => LAXITY_ERROR_SWAP,
            ErrorCode::Config => LAXITY_ERROR_CONFIG,
            ErrorCode::NoArbitration => LAXITY_ERROR_NO_ARBITRATION,
            ErrorCode::NoSystem => LAXITY_ERROR_NO_SYSTEM,
            ErrorCode::Client => LAXITY_ERROR_CLIENT,
            ErrorCode::NoGpu => LAXITY_ERROR_NO_GPU,
            ErrorCode::Order => LAXITY_ERROR_ORDER,
            ErrorCode::NoSoftGpu => LAXITY_ERROR_NO_SOFT_GPU,
            ErrorCode::Gone => LAXITY_ERROR_GONE,
            ErrorCode::Range => LAXITY_ERROR_RANGE,
            ErrorCode::Race => LAXITY_ERROR_RACE,
            ErrorCode::Buffer => LAXITY_ERROR_BUFFER,
            ErrorCode::Kernel => LAXITY_ERROR_KERNEL,
            ErrorCode::Inside => LAXITY_ERROR_INSIDE,
            ErrorCode::Exhausted => LAXITY_ERROR_EXHAUSTED,
            ErrorCode::Verify => LAXITY_ERROR_VERIFY,
            ErrorCode::Failed => LAXITY_ERROR_FAILED,
            ErrorCode::Internal => LAXITY_ERROR_INTERNAL,
        }
    }
}

/// Every result with its text.
const TEXTS: &[(laxity_result, &CStr)] = &[
    (LAXITY_OK, c"success"),
    (LAXITY_TIMED_OUT, c"no job in time"),
    (LAXITY_TERMINATED, c"a node has ended"),
    (LAXITY_LOST, c"a node was lost"),
    (LAXITY_CHANGED, c"someone else has written"),
    (LAXITY_ERROR_NULL, c"an argument is NULL"),
    (LAXITY_ERROR_HANDLE, c"not a handle of this type, or released"),
    (LAXITY_ERROR_TEXT, c"a text is not UTF-8"),
    (LAXITY_ERROR_BUSY, c"in use by another thread, or running"),
    (LAXITY_ERROR_VALUE, c"an argument has a value that it cannot have"),
    (LAXITY_ERROR_SPEC, c"the graph cannot be carried out"),
    (LAXITY_ERROR_NAME, c"not a name for a graph"),
    (LAXITY_ERROR_EXISTS, c"the graph exists and is in use"),
    (LAXITY_ERROR_NO_GRAPH, c"the graph does not exist"),
    (LAXITY_ERROR_DIFFERENT, c"another graph has the name"),
    (LAXITY_ERROR_FOREIGN, c"not a graph of this version of Laxity"),
    (LAXITY_ERROR_FULL, c"too many processes are attached, or threads are tasks"),
    (LAXITY_ERROR_MEMORY, c"not enough shared memory"),
    (LAXITY_ERROR_SYSTEM, c"Linux refuses"),
    (LAXITY_ERROR_CHANNEL, c"an edge cannot have its channel"),
    (LAXITY_ERROR_NO_NODE, c"the graph has no such node"),
    (LAXITY_ERROR_NO_EDGE, c"the graph has no such edge"),
    (LAXITY_ERROR_CLAIMED, c"the node is claimed"),
    (LAXITY_ERROR_ENDING, c"the node's killed process has not ended"),
    (LAXITY_ERROR_FORKED, c"this process was forked from the one that attached"),
    (LAXITY_ERROR_NO_OBJECT, c"the graph has no such object"),
    (LAXITY_ERROR_LISTEN, c"the node cannot listen at the address of an edge"),
    (LAXITY_ERROR_UNREACHABLE, c"the node that listens cannot be connected to"),
    (LAXITY_ERROR_SCHEDULE, c"Linux does not schedule the thread as asked"),
    (LAXITY_ERROR_NO_JOB, c"no job is begun"),
    (LAXITY_ERROR_INCOMPLETE, c"the job is not complete"),
    (LAXITY_ERROR_NO_RING, c"the edge carries no messages at this node, or leads the other way"),
    (LAXITY_ERROR_NO_MESSAGE, c"the job has fewer messages"),
    (LAXITY_ERROR_TOO_LONG, c"the message is too long"),
    (LAXITY_ERROR_ACCESS, c"the node does not say that it uses the object so"),
    (LAXITY_ERROR_MESSAGE_LOST, c"the message was lost with a former owner of a node"),
    (LAXITY_ERROR_NO_RECORDER, c"the graph has no recorder"),
    (LAXITY_ERROR_FILE, c"a trace file cannot be written"),
    (LAXITY_ERROR_SWAP, c"the messages cannot be swapped"),
    (LAXITY_ERROR_CONFIG, c"the configuration cannot be"),
    (LAXITY_ERROR_NO_ARBITRATION, c"the arbitration does not exist"),
    (LAXITY_ERROR_CLIENT, c"a thread's name or priority cannot be one"),
    (LAXITY_ERROR_NO_GPU, c"there is no such GPU"),
    (LAXITY_ERROR_NO_ENGINE, c"there is no such engine, or it copies nothing"),
    (LAXITY_ERROR_ORDER, c"a call in the wrong order: of locks of GPUs, or of a task"),
    (LAXITY_ERROR_NO_TOKEN, c"the thread holds no token"),
    (LAXITY_ERROR_THREAD, c"the handle belongs to another thread"),
    (LAXITY_ERROR_NO_SOFT_GPU, c"a soft GPU cannot be opened"),
    (LAXITY_ERROR_GONE, c"the server of a soft GPU ended"),
    (LAXITY_ERROR_RANGE, c"bytes that are not within the buffer"),
    (LAXITY_ERROR_RACE, c"bytes that another operation uses at the same time"),
    (LAXITY_ERROR_BUFFER, c"a buffer is another device's or GPU's"),
    (LAXITY_ERROR_KERNEL, c"a GPU kernel failed"),
    (LAXITY_ERROR_INSIDE, c"a GPU kernel cannot issue operations"),
    (LAXITY_ERROR_EXHAUSTED, c"the job's budget is exhausted"),
    (LAXITY_ERROR_VERIFY, c"the vision graph cannot be executed"),
    (LAXITY_ERROR_FAILED, c"a node of the vision graph has failed"),
    (LAXITY_ERROR_NO_SYSTEM, c"the system of scheduled tasks does not exist"),
    (LAXITY_ERROR_WORKLOAD, c"the workload is wrong, or cannot be run here"),
    (LAXITY_ERROR_NO_TASK, c"the workload has no such task"),
    (LAXITY_ERROR_CODE, c"a function that jobs call failed"),
    (LAXITY_ERROR_INTERNAL, c"a fault in Laxity"),
];

/// The meaning of `result` in a few words; a constant.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_result_text(result: i32) -> *const c_char {
    let found = TEXTS.iter().find(|(known, _)| *known as i32 == result);
    found.map_or(c"unknown result", |(_, text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the texts of results, which stay there for ever.
        unsafe { CStr::from_ptr(pointer) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn results_have_one_number_and_one_text_each() {
        let numbers: Vec<i32> = TEXTS.iter().map(|(result, _)| *result as i32).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other));
        for (result, words) in TEXTS {
            assert_eq!(text(laxity_result_text(*result as i32)), words.to_str().expect("UTF-8"));
        }
        assert_eq!(text(laxity_result_text(12345)), "unknown result");
    }
}
