"""What every test process needs before torch and diffusers are imported."""

import os
import sys

# The networks of the tests are tiny: threads that wait for each other cost more than they give.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
# torchvision comes along with the CLIP vocabulary, built for another torch; whoever looks for it must not find it.
sys.modules["torchvision"] = None
