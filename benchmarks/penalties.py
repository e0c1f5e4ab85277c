"""Batch-level terms, forward and backward: time as a ratio to the plain form in the same run, and memory.

Run: ``python benchmarks/penalties.py``
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from torch import Tensor

from equipoise.losses import mmce_penalty, sece_penalty, soft_ece_penalty
from equipoise.losses.statistics import top_label

Term = Callable[[Tensor, Tensor], Tensor]


def make_batch(n_samples: int, n_classes: int = 10) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(n_samples, n_classes, generator=generator)
    return logits.requires_grad_(), torch.randint(0, n_classes, (n_samples,), generator=generator)


def mmce_all_pairs(logits: Tensor, labels: Tensor) -> Tensor:
    confidence, correct = top_label(logits, labels)
    gap = (correct - confidence) / len(confidence)
    return (gap[:, None] * gap * (-(confidence[:, None] - confidence).abs() / 0.4).exp()).sum()


def mmce_sorted(logits: Tensor, labels: Tensor) -> Tensor:
    return mmce_penalty(logits, labels, squared=True)


def sece_all_pairs(logits: Tensor, labels: Tensor) -> Tensor:
    confidence, correct = top_label(logits, labels)
    kernel = (-((confidence[:, None] - confidence) / 0.01).square() / 2).exp()
    return (kernel @ correct / kernel.sum(-1) - confidence).abs().mean()


def best_times(terms: dict[str, Term], n_samples: int, repeats: int) -> dict[str, float]:
    """Fastest of interleaved runs, in milliseconds: the least disturbed by other work on the machine."""
    batch = make_batch(n_samples)
    best = dict.fromkeys(terms, float("inf"))
    for _ in range(repeats):
        for name, term in terms.items():
            start = time.perf_counter()
            term(*batch).backward()
            best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
    return best


def peak_memory(term: Term, n_samples: int) -> float:
    """Rise of the peak memory of a fresh process, in megabytes."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"  # freed tensors go back at once, and do not count
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_rise, term, n_samples).result()


def _rise(term: Term, n_samples: int) -> float:
    term(*make_batch(1100)).backward()  # load what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    term(*make_batch(n_samples)).backward()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def compare_mmce(n_samples: int = 1024, repeats: int = 50) -> float:
    """How many times faster the sort is than all pairs."""
    times = best_times({"sort": mmce_sorted, "pairs": mmce_all_pairs}, n_samples, repeats)
    return times["pairs"] / times["sort"]


def main() -> None:
    torch.set_num_threads(1)
    terms = {"soft_ece": soft_ece_penalty, "sece": sece_penalty, "sece, all pairs": sece_all_pairs}
    memory = {
        name: peak_memory(term, 8192) for name, term in terms.items()
    }  # first: a child inherits our peak
    times = best_times(terms, n_samples=8192, repeats=2)
    for name in terms:
        print(f"{name}, 8192 x 10: {times[name]:.1f} ms, {memory[name]:.0f} MB")
    print(f"mmce, 1024 x 10: all pairs / sort = {compare_mmce():.1f}")


if __name__ == "__main__":
    main()
