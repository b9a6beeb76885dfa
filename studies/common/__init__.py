"""What all studies share: plans and how they are run, results on disk, claims, and the page."""
