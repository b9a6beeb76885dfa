"""Ali and Yun 2018: BWLOCK++ and the Throttle Fair Scheduler, simulated under two readings of the budget, and live."""

from studies.ali2018bwlock.claims import CLAIMS
from studies.ali2018bwlock.plan import chosen
from studies.ali2018bwlock.results import BwlockResults
from studies.ali2018bwlock.tables import TITLE, tables
from studies.common.study import Choices, PublishedStudy

STUDY = PublishedStudy(
    name="ali2018bwlock",
    title=TITLE,
    claims=CLAIMS,
    plan=chosen,
    quick=Choices(seconds=1),
    read=BwlockResults,
    tables=tables,
)
