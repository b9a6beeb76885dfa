// Memory that a real-time thread does not wait for.

#pragma once

// Keeps memory of this process in RAM that was once used, what it has and what it gets, and says whether Linux permits
// that (CAP_IPC_LOCK, or `ulimit -l unlimited`). Pages that this process never touches are not brought in: most of the
// soft GPU's memory, which others use.
bool lock_memory();
