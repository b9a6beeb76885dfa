"""Published studies at full size: run them, and see our curves beside what the papers say.

From the root of the repository:

    python -m studies brandenburg2009gedf --out out/gedf            # all CPUs of this machine; Ctrl-C, resume
    python -m studies brandenburg2009gedf --out out/gedf --dask tcp://scheduler:8786
    python -m studies elliott2012klmirqd --out out/klmirqd --quick  # a smaller one, in seconds
    python -m studies elliott2012klmirqd_runtime                    # simulations: inversions, response times
    python -m studies elliott2015vision --live --for 60s            # simulations, and processes on this machine

A folder has the code of a study beside what it found: ``claims`` says what the paper says and how that is checked,
``drawing`` draws its figures. ``common`` is what all share. Every decision is made in Rust (``laxity-study``): here
chunks are handed out, counts are added up, and curves are drawn. The result does not depend on how the work was split,
byte for byte.
"""
