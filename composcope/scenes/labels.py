"""Which objects of a training image are labelled: the policies of the paper's table 2."""

from collections.abc import Sequence

from composcope import chance
from composcope.chance import below, key, shuffled
from composcope.errors import InputError

# In the words of the table: "All labels", "Single label", "Rand num labels", "Drop one label".
LABELS = ("all", "one", "random", "all_but_one")


def apply_policy(conditions: Sequence, labels: str, seed: int) -> tuple:
    """The conditions a label policy keeps, in their order, chosen by `seed` alone.

    "random" keeps 1 to n of n: the paper does not give the range, but calls K = 0 out of
    distribution (table 2)."""
    if labels not in LABELS:
        names = ", ".join(LABELS)
        raise InputError(f"there is no label policy {labels!r}; the policies are {names}")
    n, choice = len(conditions), key(seed, 0, chance.LABELS)
    if labels == "all" or n == 0:
        return tuple(conditions)
    keep = {"one": 1, "random": 1 + below(n, choice, n), "all_but_one": n - 1}[labels]
    return tuple(conditions[k] for k in sorted(shuffled(n, choice)[:keep]))


def most_unlabelled(labels: str, objects: int) -> int:
    """The most objects that a label policy leaves without a label in an image of so many."""
    most = {"all": 0, "all_but_one": min(1, objects - 1)}
    return most.get(labels, objects - 1)
