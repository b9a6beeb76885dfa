// The reference: one thread that calls one node after the other.

#pragma once

#include "graph.h"

// Runs the graph until its source has no more.
void run_sequential(const Graph &graph, Log &log);
