"""Elliott 2015, chapter 5: seventeen video stabilizers on six CPUs and a GPU, simulated and live."""

from studies.common.study import Choices, PublishedStudy
from studies.elliott2015vision.claims import CLAIMS
from studies.elliott2015vision.plan import chosen
from studies.elliott2015vision.results import VisionResults
from studies.elliott2015vision.tables import TITLE, tables

STUDY = PublishedStudy(
    name="elliott2015vision",
    title=TITLE,
    claims=CLAIMS,
    plan=chosen,
    quick=Choices(seconds=5),
    read=VisionResults,
    tables=tables,
)
