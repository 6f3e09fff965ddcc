"""Random numbers without a state: number n of a stream is a function of (seed, index, use, n).

key = mix(mix(mix(seed) + index) + use),   number n = mix(key + n gamma)

This is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). So scene i does not depend on which scenes
were made before it, in which batch, or by how many threads."""

import numpy as np

from composcope.compiled import compiled

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
ONE, MASK = np.uint64(1), 2**64 - 1
SCENE, LABELS, SLOTS, SHUFFLE = 0, 1, 2, 3  # the uses


@compiled
def mix(z):
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@compiled
def stream(seed, index, use):
    """The key of a stream; its arguments are taken modulo 2^64."""
    return mix(mix(mix(np.uint64(seed) + GAMMA) + np.uint64(index)) + np.uint64(use))


@compiled
def uniform(key, n):
    """Number n of a stream, in [0, 1)."""
    return np.float64(mix(key + (np.uint64(n) + ONE) * GAMMA) >> np.uint64(11)) * 2.0**-53


@compiled
def stream_numbers(key, count):
    """The first numbers of a stream."""
    out = np.empty(count)
    for n in range(count):
        out[n] = uniform(key, n)
    return out


def key(seed: int, index: int, use: int) -> np.uint64:
    """`stream` for Python's integers of any size and sign."""
    return np.uint64(stream(np.uint64(seed & MASK), np.uint64(index & MASK), np.uint64(use)))


def below(most: int, key: np.uint64, n: int = 0) -> int:
    """Number n of a stream as an integer in 0 .. most - 1."""
    return int(uniform(key, n) * most)


def shuffled(count: int, key: np.uint64) -> list[int]:
    """0 .. count - 1 in an order drawn from a stream."""
    return np.argsort(stream_numbers(key, count), kind="stable").tolist()
