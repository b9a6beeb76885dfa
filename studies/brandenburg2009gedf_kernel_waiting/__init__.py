"""As ``brandenburg2009gedf_kernel``, with what each of 32 CPUs would wait for the scheduler's locks at most."""

from studies.brandenburg2009gedf_kernel import TITLE, study_of
from studies.brandenburg2009gedf_kernel.overheads import WAITING

STUDY = study_of("brandenburg2009gedf_kernel_waiting", f"{TITLE}, and the longest waiting of 32 CPUs", WAITING)
