"""What jobs of Laxity are for the functions that run them. Run inside the `laxity` command, or a program of Python."""

import contextlib
import importlib
import operator
import sys
import traceback
import types
from pickle import PickleBuffer

WARM_UP = 2**64 - 1
# Where `laxity.run` puts the functions that it is given: they have no names that the user knows.
UNNAMED = "laxity._run"
# What functions answer that have not run yet.
UNRUN = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
KINDS = ("cpu", "nonpreemptive", "suspend")


class Edge:
    """The messages of an edge: `messages[k]` is a memoryview, in place; `taken` is left to the file."""

    __slots__ = ("lengths", "messages", "peer")

    def __init__(self, peer, messages):
        self.peer = peer
        self.messages = messages
        self.lengths = [len(message) for message in messages]

    def __len__(self):
        return len(self.messages)

    def __getitem__(self, number):
        try:
            return self.messages[number]
        except IndexError:
            there = f"{len(self.messages)} of {self.peer!r}"
            if not self.messages:
                there += ": a call before time 0 (`job.is_warm_up`) has none, nor a latest value that is not there yet"
            raise IndexError(f"message {number} is not among the {there}") from None

    def resize(self, length, number=0):
        """Of message `number`, which goes out, the first `length` bytes are sent. Its memoryview stays as long as it is."""
        length, most = operator.index(length), len(self[number])
        if not 0 <= length <= most:
            raise ValueError(f"{length} bytes do not fit into a message of {most}")
        self.lengths[number] = length


class Job:
    """A step of a job: what the function of a task is called with. Its messages are valid until the function returns."""

    __slots__ = ("deadline_ns", "index", "inputs", "kind", "outputs", "release_ns", "step", "task")

    def __init__(self, task, numbers, inputs, outputs):
        self.task = task
        self.index, self.release_ns, self.deadline_ns, self.step, kind = numbers
        self.kind = KINDS[kind]
        self.inputs = inputs
        self.outputs = outputs

    @property
    def is_warm_up(self):
        """Whether it is before time 0: it has no messages then."""
        return self.index == WARM_UP

    def input(self, peer=None):
        """The edge from the node `peer`, or the only one."""
        return _one(self.inputs, peer)

    def output(self, peer=None):
        """The edge to the node `peer`, or the only one."""
        return _one(self.outputs, peer)


def _one(edges, peer):
    found = [edge for edge in edges if peer in (None, edge.peer)]
    if len(found) != 1:
        known = ", ".join(edge.peer for edge in edges) or "none"
        raise KeyError(f"{len(found)} edges with messages have the peer {peer!r}; those that there are: {known}")
    return found[0]


class _State:
    def __init__(self, function, task, inputs, outputs):
        self.function = function
        self.task = task
        self.inputs = inputs
        self.outputs = outputs


def set_path(folders):
    """Modules are looked for in `folders`, and nowhere else."""
    sys.path[:] = folders


def prepare(name, task, inputs, outputs):
    """What calls need; a text if the function `name`, `module:function`, cannot be called. A class is made an object of."""
    try:
        module, _, path = name.partition(":")
        function = importlib.import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
        if isinstance(function, type):
            function = function() if task else function
        if not callable(function):
            return _plain(f"{name} is no function, but {function!r}")
    except BaseException as error:
        return _words(error) if module == UNNAMED else _plain(f"{name}: {_words(error)}")
    return _State(function, task, inputs, outputs)


def call(state, numbers, inputs, outputs):
    """Calls the function. Answers a list: a text if it failed, or else None; whether something still shows a message; and
    the length of each message that goes out."""
    bases = [base for edge in (*inputs, *outputs) for base in edge]
    inputs = [Edge(peer, [_lent(base) for base in messages]) for peer, messages in zip(state.inputs, inputs)]
    outputs = [Edge(peer, [_lent(base) for base in messages]) for peer, messages in zip(state.outputs, outputs)]
    views = [view for edge in (*inputs, *outputs) for view in edge.messages]
    failed = None
    try:
        answer = state.function(Job(state.task, numbers, inputs, outputs))
        if isinstance(answer, UNRUN):
            kind = type(answer).__name__
            failed = f"it has not run: its answer is of type {kind}; make it a function without `async` and `yield`"
            _discard(answer)
        del answer
    except BaseException as error:
        _print_exception()
        failed = _words(error)
    lengths = [length for edge in outputs for length in edge.lengths]
    # Views first: each has its base as long as anything shows its memory, be it the view itself or what was made of it.
    is_kept = not all([*map(_is_released, views), *map(_is_released, bases)])
    if is_kept and failed is None:
        failed = "it keeps a message beyond its job (an array or a slice over it is still there); copy what is kept"
    return [failed, int(is_kept), *lengths]


def _discard(unrun):
    # Python would warn on standard error that a coroutine was never awaited.
    if isinstance(unrun, types.CoroutineType):
        unrun.close()


def _lent(base):
    """A view of the message that `base` is a view of, whose memory is counted as used by `base` until nothing shows it.

    A memoryview of a memoryview would share the memory of the first, which could be released all the same."""
    buffer = PickleBuffer(base)
    view = memoryview(buffer)
    buffer.release()
    return view


def _is_released(view):
    """Whether `view` could be released, as nothing that was made of it is left."""
    try:
        view.release()
    except BufferError:
        return False
    return True


def end(state):
    """The last call: an object that has `close` is closed. A text if that failed."""
    close = getattr(state.function, "close", None)
    if close is not None:
        try:
            close()
        except BaseException as error:
            _print_exception()
            return _words(error)
    return None


def _print_exception():
    # There may be no standard error.
    with contextlib.suppress(Exception):
        traceback.print_exc()


def _words(error):
    # The user's line.
    ours = (__name__, "<frozen importlib")
    where = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    place = f" ({where[-1].filename}:{where[-1].lineno})" if where else ""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    text = text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
    return _plain(f"{type(error).__name__}: {text}{place}")


def _plain(text):
    """`text` without what UTF-8 has no bytes for: names of files may have that."""
    return text.encode(errors="backslashreplace").decode()
