"""PyOpenCL: kernels that wait for a user event which this thread sets later, maps, and many launches."""

import hashlib

import numpy as np
import pyopencl as cl

context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
program = cl.Program(
    context, "__kernel void f(__global uint *a, uint n) { int i = get_global_id(0); a[i] = a[i] * 1664525u + n; }"
).build()
kernel = program.f
values = np.arange(1 << 12, dtype=np.uint32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
for number in range(100):
    kernel(queue, values.shape, None, buffer, np.uint32(number))
first = cl.UserEvent(context)
kernel(queue, values.shape, None, buffer, np.uint32(7), wait_for=[first])
copied = cl.enqueue_copy(queue, values, buffer, is_blocking=False)
queue.flush()
first.set_status(cl.command_execution_status.COMPLETE)
copied.wait()
print(hashlib.sha256(values.tobytes()).hexdigest())
mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, values.shape, values.dtype)
print(hashlib.sha256(mapped.tobytes()).hexdigest())
mapped.base.release(queue)
queue.finish()
