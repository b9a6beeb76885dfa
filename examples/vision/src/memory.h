// Memory that a real-time thread does not wait for.

#pragma once

// Keeps all memory of this process in RAM from now on, what it has and what it gets, and says whether Linux permits
// that (CAP_IPC_LOCK, or `ulimit -l unlimited`). Threads made from now on have small stacks, as all of a stack is kept.
bool lock_memory();
