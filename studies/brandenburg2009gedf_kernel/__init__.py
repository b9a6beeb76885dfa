"""Brandenburg & Anderson, RTSS 2009, once more: with what Laxity's scheduler in the kernel costs."""

from studies.brandenburg2009gedf.claims import ALTERNATIVES
from studies.brandenburg2009gedf_kernel.claims import CLAIMS, TITLE
from studies.brandenburg2009gedf_kernel.overheads import tables
from studies.common.plan import chosen
from studies.common.results import Results
from studies.common.study import Choices, PublishedStudy

STUDY = PublishedStudy(
    name="brandenburg2009gedf_kernel",
    title=TITLE,
    claims=CLAIMS,
    plan=lambda choices: chosen("brandenburg2009gedf_kernel", choices),
    quick=Choices(step=5, replicates=10),
    read=Results,
    tables=tables,
    alternatives=ALTERNATIVES,
)
