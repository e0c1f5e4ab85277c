"""The metrics against their peers, in one run, interleaved; every target is printed with pass or fail.

Run with ``python benchmarks/metrics.py`` (small sizes), or with ``--full`` for all that memory allows. Times are the
least of some repeats; only ratios of the same run mean anything. ``--cpu haswell`` measures what a processor without
AVX-512 would run, ``--threads 1 --cpu-time`` is for a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import numpy as np
import processor
import torch

from equipoise import Predictions, metrics
from equipoise.core.choices import ScoreSettings
from equipoise.kernels.dispatch import use_backend
from equipoise.metrics import CalibrationState
from equipoise.metrics.resample import Resampler

QUICK = ((10_000, 10), (10_000, 100), (100_000, 100), (20_000, 1000))
FULL = (
    (10_000, 2),
    (10_000, 100),
    (100_000, 100),
    (10_000, 1000),
    (1_000_000, 10),
    (10_000_000, 10),
    (1_000_000, 100),
    (100_000, 1000),
    (1_000_000, 1000),
)


now = time.perf_counter


def optional(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None


def race(runners: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run all in turn, several times; return the least time of each."""
    best = dict.fromkeys(runners, float("inf"))
    for turn in range(repeats + 1):
        for name, run in runners.items():
            start = now()
            run()
            if turn:  # The first turn compiles and warms up.
                best[name] = min(best[name], now() - start)
    return best


def verdict(what: str, found: float, wanted: float, *, at_most: bool) -> None:
    passed = found <= wanted if at_most else found >= wanted
    sign = "<=" if at_most else ">="
    print(f"  {'pass' if passed else 'FAIL'}  {what}: {found:.3g} (target {sign} {wanted:g})")


def classwise_by_masks(probs: torch.Tensor, labels: torch.Tensor, n_bins: int = 15) -> float:
    """Classwise ECE the way it is often written: for every class, for every bin, a mask over all rows."""
    edges = torch.linspace(0, 1, n_bins + 1)
    total = 0.0
    for k in range(probs.shape[1]):
        column, hit = probs[:, k], (labels == k).float()
        for low, high in itertools.pairwise(edges):
            inside = (column > low) & (column <= high)
            if inside.any():
                gap = column[inside].mean() - hit[inside].mean()
                total += float(gap.abs() * inside.float().mean())
    return total / probs.shape[1]


def state_of(predictions: Predictions) -> CalibrationState:
    return CalibrationState.of(predictions)


def whole_state(n: int, k: int) -> None:
    # What takes a millisecond needs more repeats than what takes a second.
    repeats = min(max(int(3e8 / (n * k)), 5), 50)
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(n, k, generator=generator)
    probs, labels = torch.softmax(logits, dim=1), torch.randint(k, (n,), generator=generator)
    rows = Predictions(probs=probs, labels=labels)
    raw = Predictions(logits=logits, labels=labels)
    runners: dict[str, Callable[[], object]] = {
        "numpy.sum": lambda: probs.numpy().sum(),
        "state": lambda: state_of(rows),
        "state of logits": lambda: state_of(raw),
        "checks": lambda: Predictions(probs=probs, labels=labels),
    }
    peer = optional("torchmetrics.functional.classification")
    if peer is not None:
        ece = peer.multiclass_calibration_error
        runners["torchmetrics"] = lambda: ece(probs, labels, k, n_bins=15, validate_args=False)
        runners["softmax, torchmetrics"] = lambda: ece(
            torch.softmax(logits, 1), labels, k, n_bins=15, validate_args=False
        )
    times = race(runners, repeats)
    unit = times["numpy.sum"]
    print(f"\n{n:.0e} x {k}, least of {repeats}: numpy.sum {1000 * unit:.2f} ms; times of it:")
    print("  " + ", ".join(f"{name} {value / unit:.2f}" for name, value in times.items()))
    if k >= 100 and peer is not None:
        verdict("torchmetrics ECE alone over state", times["torchmetrics"] / times["state"], 2, at_most=False)
        ratio = times["softmax, torchmetrics"] / times["state of logits"]
        verdict("softmax and torchmetrics over state of logits", ratio, 1.5, at_most=False)
    if peer is None:
        print("  torchmetrics: not installed")
    if k == 100 and n <= 100_000:
        slow = race({"masks": lambda: classwise_by_masks(probs, labels)}, 1)["masks"]
        verdict("classwise ECE by masks over state", slow / times["state"], 100, at_most=False)


def extra_memory(n: int = 1_000_000, k: int = 100) -> None:
    probs = torch.softmax(torch.randn(n, k), dim=1)
    rows = Predictions(probs=probs, labels=torch.zeros(n, dtype=torch.int64))
    state_of(rows.take(slice(0, 4096)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        state_of(rows)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"\nextra memory of the pass over {n * k * 4 / 2**20:.0f} MB")
    verdict("growth of the peak, MB", grown, 16, at_most=True)


def exactness(n: int) -> None:
    labels = torch.zeros(n, dtype=torch.int64)
    labels[::20] = 1
    probs = torch.tensor([0.95, 0.05]).expand(n, 2).contiguous()
    state = state_of(Predictions(probs=probs, labels=labels))
    print(f"\na calibrated constant 0.95 at n = {n:.0e}")
    verdict("our ECE", state.curve().expected_error(), 1e-6, at_most=True)
    peer = optional("torchmetrics.functional.classification")
    if peer is not None:
        found = peer.multiclass_calibration_error(probs, labels, 2, n_bins=15, validate_args=False)
        print(f"  torchmetrics: {float(found):.4f}")


def intervals(n: int, k: int, repeats: int) -> None:
    probs = torch.softmax(3 * torch.randn(n, k), dim=1)
    labels = torch.multinomial(probs, 1)[:, 0]
    rows = Predictions(probs=probs, labels=labels)
    state = state_of(rows)
    times = race(
        {
            "pass": lambda: state_of(rows),
            "draws": lambda: Resampler(state, ScoreSettings()).bootstrap(),
        },
        repeats,
    )
    print(f"\n1000 bootstrap resamples of {n:.0e} x {k}: {1000 * times['draws']:.0f} ms")
    verdict("intervals over the pass", times["draws"] / times["pass"], 5, at_most=True)


def without_bins(n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(n, dtype=np.float32)
    correct = rng.random(n) < confidence
    rows = Predictions(
        predicted=np.zeros(n, int), confidence=confidence, labels=(~correct).astype(int), n_classes=2
    )
    column = torch.from_numpy(confidence)
    rows.correct.sum()
    runners: dict[str, Callable[[], object]] = {
        "torch sort": lambda: torch.sort(column),
        "adaptive": lambda: metrics.adaptive_calibration_error(rows),
        "smooth": lambda: metrics.smooth_calibration_error(rows),
    }
    times = race(runners, repeats)
    print(f"\nmetrics of confidence alone, n = {n:.0e}")
    ratio = times["torch sort"] / times["adaptive"]
    verdict("torch sort of the confidences over adaptive ECE", ratio, 5, at_most=False)
    peer = optional("relplot")
    if peer is None:
        print("  relplot: not installed")
        return
    slow = race({"relplot": lambda: peer.smECE(confidence.astype(float), correct.astype(float))}, 1)[
        "relplot"
    ]
    verdict("relplot over smECE", slow / times["smooth"], 10, at_most=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes; needs 12 GB and some minutes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="processor time instead of the clock's, for a busy machine"
    )
    processor.add_option(parser)
    arguments = parser.parse_args()
    processor.compile_for(arguments.cpu)
    global now  # noqa: PLW0603 - one clock for all races
    now = time.process_time if arguments.cpu_time else time.perf_counter
    torch.set_num_threads(arguments.threads)
    full = arguments.full
    load = os.getloadavg()[0]
    print(f"{arguments.threads} threads; load {load:.1f} on {os.cpu_count()} cores")
    if load > 1:
        print(
            "the machine is busy: our times need both cores, numpy.sum one, so ratios to it come out too high"
        )
    with use_backend("compiled"):
        for n, k in FULL if full else QUICK:
            whole_state(n, k)
        extra_memory()
        exactness(10_000_000)
        intervals(1_000_000, 100, 3)
        without_bins(1_000_000, 5)


if __name__ == "__main__":
    main()
