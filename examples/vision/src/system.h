// The system of Laxity's own scheduler whose tasks the nodes are, among those of other stabilizers.

#pragma once

#include <laxity/laxity.hpp>
#include <string>

// All processes of a system say the same, but for the cluster.
struct SystemSettings {
    std::string name;
    // As "0-1" or "0;1"; if empty, one cluster of all CPUs that this process may use.
    std::string clusters = {};
    // The one that schedules this process.
    uint32_t cluster = 0;
    // Of the GPU (rho in paper 003); 0: it is not managed, and operations go in the order in which they are issued.
    uint16_t tokens = 0;
    // The longest FIFO queue of a token (f); 0: as short as the CPUs allow.
    uint16_t fifo_length = 0;
    // The CPUs for whose jobs the tokens are (m), where the system stands for a larger machine; 0: its own.
    uint16_t virtual_cpus = 0;
    bool engines_by_priority = false;
};

using System = laxity::Handle<laxity_system, laxity_system_release>;

// Joins the system, which the first process creates: earliest deadline first. Its first lock is that of the tokens, if
// there are any. Throws laxity::Error.
System join(const SystemSettings &settings);
