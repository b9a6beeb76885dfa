"""Random task sets by name and seed."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

from laxity import _native
from laxity._native import Workload

Parameter: TypeAlias = str | int | float | Decimal | Iterable[float]


def generate(
    generator: str,
    *,
    seed: int,
    cpus: int = 1,
    platform: str | None = None,
    policy: str = "G-EDF",
    name: str | None = None,
    **parameters: Parameter,
) -> Workload:
    """The task set that a generator and a seed name, on ``cpus`` CPUs: the same on any machine.

    Args:
        generator: UTILIZATIONS/PERIODS, with or without parameters after it: "uni-light/moderate cap=2" and
            ``"uni-light/moderate", cap=2`` are the same. Utilizations: uni-, bimo- or exp- followed by light, medium or
            heavy, ``uniform(MIN,MAX)``, ``exponential(MEAN)`` (these take ``cap``); uunifast-discard, randfixedsum,
            dirichlet-rescale, pair-exchange (these take ``n``, ``total``, and all but the first ``min`` and ``max``).
            Periods: short, moderate, long, multimedia, ``uniform(MIN,MAX,STEP)``, ``log-uniform(MIN,MAX,STEP)``.
        seed: which of the generator's task sets, 0 to 2**64 - 1.
        cpus: of the platform.
        platform: "klmirqd" for the machine of Elliott, Ward & Anderson's klmirqd study (12 CPUs, 8 GPUs).
        policy: the scheduler of the workload.
        name: of the workload; the generator, its parameters and the seed if not given.
        parameters: the generator's; floats are taken with nine decimals, one value a task is a list.

    Returns:
        A workload whose ``provenance`` replays it.

    Raises:
        ValueError: for an unknown generator or parameters that admit no task set.
    """
    return _native._generate(_line(generator, parameters), seed, cpus, platform, policy, name)


def generate_many(
    generator: str,
    count: int,
    *,
    seed: int,
    point: int = 0,
    cpus: int = 1,
    platform: str | None = None,
    policy: str = "G-EDF",
    threads: int | None = None,
    **parameters: Parameter,
) -> list[Workload]:
    """``count`` task sets of one generator, drawn on all CPUs without the GIL. Ctrl-C ends it.

    Each has a seed of its own, mixed from ``seed`` (the experiment), ``point`` (say, which value of a parameter) and
    its place in the list: neither the number of threads nor the other sets matter. The other arguments are those of
    :func:`generate`.
    """
    line = _line(generator, parameters)
    return _native._generate_many(line, count, seed, point, cpus, platform, policy, threads)


def _line(generator: str, parameters: dict[str, Parameter]) -> str:
    return " ".join([generator, *(f"{key}={_text(value)}" for key, value in parameters.items())])


def _text(value: Parameter) -> str:
    """The value as a generator's line has it."""
    match value:
        case str():
            return value
        case bool():
            raise TypeError(f"{value} is no number; pass an int, a float or a str")
        case int():
            return str(value)
        case float() | Decimal():
            # Nine decimals are what the generators know; more would be an error, and 0.1 + 0.2 has more.
            return f"{value:.9f}".rstrip("0").rstrip(".")
        case _:
            return ",".join(_text(item) for item in value)
