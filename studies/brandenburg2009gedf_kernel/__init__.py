"""Brandenburg & Anderson, RTSS 2009, once more: with what Laxity's scheduler in the kernel costs."""

from studies.brandenburg2009gedf.claims import ALTERNATIVES
from studies.brandenburg2009gedf_kernel.claims import claims
from studies.brandenburg2009gedf_kernel.overheads import ALONE, Costs
from studies.common.plan import chosen
from studies.common.results import Results
from studies.common.study import Choices, PublishedStudy

TITLE = (
    "Brandenburg & Anderson (RTSS 2009) with the overheads of Laxity's scheduler in the kernel: emulated machine, "
    "instruction counts"
)


def study_of(name: str, title: str, costs: Costs) -> PublishedStudy:
    """The paper's questions with these costs."""
    return PublishedStudy(
        name=name,
        title=title,
        claims=claims(costs),
        plan=lambda choices: chosen(name, choices),
        quick=Choices(step=5, replicates=10),
        read=Results,
        tables=costs.tables(),
        alternatives=ALTERNATIVES,
    )


STUDY = study_of("brandenburg2009gedf_kernel", TITLE, ALONE)
