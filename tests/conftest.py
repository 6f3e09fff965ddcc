"""What every test process needs before torch and diffusers are imported."""

import os
import signal
import sys

import numba

# The networks of the tests are tiny, and tests run in several processes: threads that wait for each
# other cost more than they give. A test of threads asks for more of them itself.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
numba.set_num_threads(1)
# A shell that runs the tests in the background lets them ignore SIGINT, and what they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A torchvision that was built for another torch breaks the import of transformers.
sys.modules["torchvision"] = None
