"""What scripts/kernel_profile.py makes of the instructions that QEMU wrote down."""

import kernel_profile

PROGRAM = "bpf_prog_00ff_"
RELEASE = [
    ("asm_sysvec_apic_timer_interrupt", 5),
    ("hrtimer_interrupt", 100),
    (PROGRAM + "on_timer", 10),
    ("ktime_get_mono_fast_ns", 20),
    (PROGRAM + "look_at_first", 30),
    ("scx_kick_cpu", 4),
    ("asm_sysvec_irq_work", 50),
    ("kick_cpus_irq_workfn", 60),
    (PROGRAM + "on_timer", 2),
    ("handle_softirqs", 7),
    ("__bpf_prog_enter", 8),
    (PROGRAM + "laxity_dispatch", 40),
    ("bpf_task_storage_get", 3),
    (PROGRAM + "laxity_dispatch", 1),
    ("__bpf_prog_exit", 9),
    ("__schedule", 200),
]
BACK = [("entry_SYSCALL_64", 6), ("__bpf_prog_enter", 8), (PROGRAM + "laxity_dispatch", 40), ("__bpf_prog_exit", 9)]


def test_instructions_are_those_of_programs_or_called_by_them_or_of_linux():
    found = kernel_profile.shares(kernel_profile.to_the_start(RELEASE + BACK))
    # An interrupt that a CPU sends itself is not called by the program, though it comes in the midst of it.
    assert found == {
        "programs": 10 + 30 + 2 + 40 + 1,
        "called by them": 20 + 4 + 8 + 3,
        "Linux": 5 + 100 + 50 + 60 + 7 + 9 + 200,
    }
    assert sum(found.values()) == sum(count for _, count in RELEASE)


def test_a_preemption_is_whole_or_left_out():
    tick = [("asm_sysvec_apic_timer_interrupt", 5), ("hrtimer_interrupt", 100)]
    calls = BACK + RELEASE + BACK + tick + RELEASE + BACK + RELEASE
    assert list(kernel_profile.preemptions(calls)) == [RELEASE + BACK, RELEASE + BACK]


def test_instructions_have_the_name_of_the_last_symbol_before_them(tmp_path):
    (tmp_path / "symbols").write_text("ffffffff81000010 t second\nffffffff81000000 T first\nffffffff81000008 D data\n")
    lines = [
        f"Trace 0: 0x7f [0000000000000000/{at}/18c0c290/ff020201] "
        for at in ["ffffffff81000001", "ffffffff8100000a", "ffffffff81000010"]
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    assert kernel_profile.executed(tmp_path / "log", tmp_path / "symbols") == [("first", 2), ("second", 1)]
