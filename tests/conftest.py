"""One thread for torch: the networks of the tests are tiny, and threads that wait for each other cost time."""

import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
