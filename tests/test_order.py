"""The order of the files of tests, on which depends how long two processes take: the longest first."""

from pathlib import Path
from types import SimpleNamespace

from conftest import LONGEST, pytest_collection_modifyitems


def test_the_files_that_go_first_exist():
    files = {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    assert not set(LONGEST) - files


def test_they_go_first_and_the_tests_of_a_file_stay_as_they_are():
    first, second = LONGEST[:2]
    names = ["test_a", second, "test_b", first, second]
    items = [SimpleNamespace(path=Path(f"{name}.py"), name=i) for i, name in enumerate(names)]
    pytest_collection_modifyitems(items)
    assert [item.name for item in items] == [3, 1, 4, 0, 2]
