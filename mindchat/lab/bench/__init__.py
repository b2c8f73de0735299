"""Measurements of decoding and of cache reuse, each with its reference inside the same run; seconds only mean something
on one machine.

Reading order: timing, decode (with llama), cache, turns (with recorder), repetition, arithmetic.
"""

from mindchat.lab.bench.arithmetic import bench_arithmetic
from mindchat.lab.bench.cache import bench_cache, five_hops, recorded
from mindchat.lab.bench.decode import bench_decode
from mindchat.lab.bench.timing import SIGNALS, prompt_of, threads, timed, versions

__all__ = [
    "SIGNALS",
    "bench_arithmetic",
    "bench_cache",
    "bench_decode",
    "five_hops",
    "prompt_of",
    "recorded",
    "threads",
    "timed",
    "versions",
]
