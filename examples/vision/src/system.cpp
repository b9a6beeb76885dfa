#include "system.h"

#include <array>

namespace
{

// 17 stabilizers of eleven nodes, and for each the thread that handles its interrupts.
constexpr uint16_t TASKS = 256;

// One for tokens, then those of the execution engine and of two copy engines.
constexpr size_t LOCKS = 4;

std::array<laxity_lock_config, LOCKS> locks(const SystemSettings &settings)
{
    std::array<laxity_lock_config, LOCKS> locks = {};
    laxity_lock_config &tokens = locks[0];

    tokens.kind = LAXITY_LOCK_TOKENS;
    tokens.replicas = settings.tokens;
    tokens.gpus = 1;
    tokens.fifo_length = settings.fifo_length;
    tokens.cpus = tokens.fifo_requests = settings.virtual_cpus;
    for (size_t engine = 1; engine < LOCKS; engine++) {
        locks[engine].kind = LAXITY_LOCK_QUEUE;
        locks[engine].order = settings.engines_by_priority ? LAXITY_LOCK_ORDER_PRIORITY : LAXITY_LOCK_ORDER_FIFO;
    }
    return locks;
}

} // namespace

System join(const SystemSettings &settings)
{
    const std::array<laxity_lock_config, LOCKS> of_gpu = locks(settings);
    laxity_system_config config = {};
    System system;

    config.rule = LAXITY_RULE_EDF;
    config.tasks = TASKS;
    config.clusters = settings.clusters.empty() ? nullptr : settings.clusters.c_str();
    config.locks = of_gpu.data();
    config.lock_count = settings.tokens > 0 ? of_gpu.size() : 0;
    laxity::check(laxity_system_create_or_attach(nullptr, settings.name.c_str(), &config, system.out()));
    return system;
}
