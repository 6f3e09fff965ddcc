"""What every test process needs before torch and diffusers are imported."""

import os
import signal
import sys
from collections.abc import Iterator

import numba
import pytest

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

# The files that take longest, the longest first: of several processes none comes to one of them when
# the others have nothing left to do. `pytest --durations 0` says what takes how long.
LONGEST = (
    "test_runs_training",
    "test_experiments",
    "test_notebooks",
    "test_explore_page",
    "test_study_slurm",
    "test_readme",
    "test_report_browser",
    "test_theory_claims",
    "test_experiments_interventions",
    "test_cli_features",
    "test_explore_api",
    "test_faults",
    "test_new_conditioner",
    "test_docs",
    "test_report_page",
    "test_theory_circles",
    "test_cli_locality",
    "test_cli_demo",
    "test_study",
    "test_front_door",
    "test_wheel",
    "test_scenes_condition",
)
PLACES = {name: place for place, name in enumerate(LONGEST)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: PLACES.get(item.path.stem, len(PLACES)))


@pytest.fixture(autouse=True)
def _denormals() -> Iterator[None]:
    """Commands of features flush numbers close to nothing to zero, for the whole process."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture(autouse=True)
def _conditioners() -> Iterator[None]:
    """What a test adds to the conditioners is not there for the next one of its process."""
    from composcope.scenes.condition import CONDITIONERS

    known = dict(CONDITIONERS)
    yield
    CONDITIONERS.clear()
    CONDITIONERS.update(known)
