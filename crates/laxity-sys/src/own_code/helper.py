"""What jobs of Laxity are for the functions that run them. Run inside the `laxity` command, or a program of Python."""

import importlib
import sys
import traceback

WARM_UP = 2**64 - 1
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
        return self.messages[number]

    def resize(self, length, number=0):
        """Message `number`, which goes out, has `length` bytes."""
        if not 0 <= length <= len(self.messages[number]):
            raise ValueError(f"{length} bytes do not fit into a message of {len(self.messages[number])}")
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
            return f"{name} is no function, but {function!r}"
    except BaseException as error:
        return f"{name}: {_words(error)}"
    return _State(function, task, inputs, outputs)


def call(state, numbers, inputs, outputs):
    """Calls the function. Answers the lengths of what goes out, or a text if it failed."""
    views = [view for edge in (*inputs, *outputs) for view in edge]
    inputs = [Edge(peer, messages) for peer, messages in zip(state.inputs, inputs)]
    outputs = [Edge(peer, messages) for peer, messages in zip(state.outputs, outputs)]
    try:
        state.function(Job(state.task, numbers, inputs, outputs))
    except BaseException as error:
        traceback.print_exc()
        return _words(error)
    lengths = [length for edge in outputs for length in edge.lengths]
    del inputs, outputs
    try:
        for view in views:
            view.release()
    except BufferError:
        return "it keeps a message beyond its job (an array over it is still there); copy what is kept"
    return lengths


def end(state):
    """The last call: an object that has `close` is closed."""
    close = getattr(state.function, "close", None)
    if close is not None:
        try:
            close()
        except BaseException:
            traceback.print_exc()


def _words(error):
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({where[-1].filename}:{where[-1].lineno})" if where else ""
    text = str(error)
    text = text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
    return f"{type(error).__name__}: {text}{place}"
