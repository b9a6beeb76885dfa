"""Brandenburg & Anderson, RTSS 2009: schedulability under nine ways to build global EDF."""

from studies.brandenburg2009gedf.claims import ALTERNATIVES, CLAIMS, TITLE
from studies.common.plan import chosen
from studies.common.results import Results
from studies.common.study import Choices, PublishedStudy

STUDY = PublishedStudy(
    name="brandenburg2009gedf",
    title=TITLE,
    claims=CLAIMS,
    plan=lambda choices: chosen("brandenburg2009gedf", choices),
    quick=Choices(step=5, replicates=10),
    read=Results,
    alternatives=ALTERNATIVES,
)
