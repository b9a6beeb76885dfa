"""Elliott & Anderson, ECRTS 2012: what GPU interrupts did to the schedule of their machine, simulated."""

from studies.common.study import Choices, PublishedStudy
from studies.elliott2012klmirqd_runtime.claims import CLAIMS, TITLE
from studies.elliott2012klmirqd_runtime.plan import chosen
from studies.elliott2012klmirqd_runtime.results import RuntimeResults
from studies.elliott2012klmirqd_runtime.tables import tables

STUDY = PublishedStudy(
    name="elliott2012klmirqd_runtime",
    title=TITLE,
    claims=CLAIMS,
    plan=chosen,
    quick=Choices(step=10, replicates=2, seconds=10),
    read=RuntimeResults,
    tables=tables,
)
