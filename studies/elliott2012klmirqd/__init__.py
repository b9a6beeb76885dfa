"""Elliott & Anderson, ECRTS 2012: schedulability with GPU interrupts that are handled in three ways."""

from studies.common.plan import chosen
from studies.common.results import Results
from studies.common.study import Choices, PublishedStudy
from studies.elliott2012klmirqd.claims import ALTERNATIVES, CLAIMS, TITLE

STUDY = PublishedStudy(
    name="elliott2012klmirqd",
    title=TITLE,
    claims=CLAIMS,
    plan=lambda choices: chosen("elliott2012klmirqd", choices),
    quick=Choices(step=5, replicates=20),
    read=Results,
    alternatives=ALTERNATIVES,
)
