"""Speed of the calibrators against peers, in one run, with what each answer costs in likelihood beside its time.

Run: ``python benchmarks/calibrators.py [--threads 1] [--repeats 3] [--quick] [--cpu haswell]``. Peers that are not
installed are left out (probmetrics, scikit-learn). Times are CPU seconds of this process, smallest of interleaved
repeats; compare ratios.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import processor
import torch

from equipoise import calibrators
from equipoise.calibrators.temperature_search import GRID, ece_on_grid
from equipoise.kernels.dispatch import use_backend

Task = Callable[[], Any]


def data(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose best temperature is near 2.5 and whose classes err differently, float32."""
    rng = np.random.default_rng(0)
    true = 3 * rng.standard_normal((n, k))
    labels = (true + rng.gumbel(size=(n, k))).argmax(1)
    bent = true / (1 + 0.1 * rng.standard_normal(k)) - 0.3 * rng.standard_normal(k)
    return (2.5 * bent).astype(np.float32), labels


def timed(tasks: dict[str, Task], repeats: int) -> dict[str, tuple[float, Any]]:
    """Run all tasks in turn, several times; return the smallest time and the answer of each."""
    best: dict[str, tuple[float, Any]] = {}
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            answer = task()
            spent = time.process_time() - start
            if name not in best or spent < best[name][0]:
                best[name] = spent, answer
    return best


def mean_nll(logits: np.ndarray, labels: np.ndarray, inverse: float) -> float:
    """Float64, in blocks."""
    total = 0.0
    for start in range(0, len(labels), 4096):
        part = torch.from_numpy(logits[start : start + 4096]).double() * inverse
        total += float(
            torch.nn.functional.cross_entropy(
                part, torch.from_numpy(labels[start : start + 4096]), reduction="sum"
            )
        )
    return total / len(labels)


def wolfe(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """The usual module, with the line search that lets it converge."""
    beta = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.LBFGS(
        [beta], lr=1.0, max_iter=50, line_search_fn="strong_wolfe", tolerance_grad=1e-9
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits * beta, labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    return float(beta.detach())


def temperature_tasks(logits: np.ndarray, labels: np.ndarray) -> dict[str, Task]:
    """Each gives an inverse temperature."""
    z, y = torch.from_numpy(logits), torch.from_numpy(labels)
    tasks: dict[str, Task] = {
        "ours": lambda: 1 / calibrators.TemperatureScaling().fit(logits, labels).temperature,
        "L-BFGS, strong Wolfe": lambda: wolfe(z, y),
    }
    try:
        from probmetrics.calibrators import TemperatureScalingCalibrator
        from probmetrics.distributions import CategoricalLogits

        def bisection() -> float:
            peer = TemperatureScalingCalibrator()
            peer.fit_torch(CategoricalLogits(z), y)
            return float(peer.invtemp_)

        tasks["probmetrics, bisection"] = bisection
    except ImportError:
        print("probmetrics is not installed")
    try:
        from sklearn.calibration import _TemperatureScaling

        tasks["scikit-learn"] = lambda: float(_TemperatureScaling().fit(logits, labels).beta_)
    except ImportError:
        print("scikit-learn is not installed, or older than 1.8")
    return tasks


def show(title: str, found: dict[str, tuple[float, Any]], excess: dict[str, float]) -> None:
    """Print one comparison; the ratio is to ours."""
    print(f"\n{title}")
    ours = found["ours"][0]
    for name, (spent, _) in found.items():
        print(f"  {name:26s}{1e3 * spent:10.1f} ms   x{spent / ours:7.1f}   excess {excess[name]: .1e}")


def bench_temperature(n: int, k: int, repeats: int) -> None:
    logits, labels = data(n, k)
    found = timed(temperature_tasks(logits, labels), repeats)
    values = {name: mean_nll(logits, labels, beta) for name, (_, beta) in found.items()}
    show(
        f"temperature by NLL, n = {n}, k = {k}",
        found,
        {name: value - min(values.values()) for name, value in values.items()},
    )


def bench_grid(n: int, k: int, repeats: int) -> None:
    logits, labels = data(n, k)
    z, y = torch.from_numpy(logits), torch.from_numpy(labels)
    edges = torch.linspace(0, 1, 16)

    def one(temperature: float) -> float:
        confidence, predicted = (z / temperature).softmax(1).max(1)
        correct, total = predicted.eq(y), 0.0
        for low, high in itertools.pairwise(edges):
            inside = confidence.gt(low) & confidence.le(high)
            if inside.any():
                gap = confidence[inside].double().mean() - correct[inside].double().mean()
                total += float(gap.abs() * inside.double().mean())
        return total

    def loop() -> float:  # a tenth of the grid; the time is multiplied below
        return min(one(temperature) for temperature in GRID[5::10])

    found = timed(
        {"ours": lambda: ece_on_grid(logits, labels, None, n_bins=15)[1], "the papers' loop": loop}, repeats
    )
    spent, smallest = found["the papers' loop"]
    found["the papers' loop"] = 10 * spent, smallest
    ours = found["ours"][1]
    show(
        f"temperature by ECE, 100 temperatures, n = {n}, k = {k} (excess: difference in ECE)",
        found,
        {"ours": float(ours[5::10].min() - smallest), "the papers' loop": 0.0},
    )


def bench_linear(n: int, k: int, repeats: int) -> None:
    try:
        from probmetrics import calibrators as peers
        from probmetrics.distributions import CategoricalLogits
    except ImportError:
        print("\nlinear maps: probmetrics is not installed")
        return
    logits, labels = data(n, k)
    z, y = torch.from_numpy(logits).double(), torch.from_numpy(labels)
    probs = z.softmax(1).numpy()

    def linear(name: str) -> float:
        peer = getattr(peers, name)()
        peer.fit_torch(CategoricalLogits(z), y)
        return peer

    def structured(name: str) -> Any:
        peer = getattr(peers, name)()
        peer.fit(probs, labels)
        return peer

    for ours, theirs, run in (
        (calibrators.VectorScaling, "VectorScalingCalibrator", linear),
        (calibrators.MatrixScaling, "MatrixScalingCalibrator", linear),
        (calibrators.StructuredVectorScaling, "SVSCalibrator", structured),
        (calibrators.StructuredMatrixScaling, "SMSCalibrator", structured),
    ):
        tasks = {
            "ours": lambda made=ours: made().fit(logits, labels),
            "probmetrics": lambda name=theirs, go=run: go(name),
        }
        found = timed(tasks, repeats)
        result = found["ours"][1].result
        value = result.certificate.get("objective", result.nll_after)
        other = objective_of(found["probmetrics"][1], z, probs, labels)
        best = min(value, other)
        show(f"{ours.__name__}, n = {n}, k = {k}", found, {"ours": value - best, "probmetrics": other - best})


def objective_of(peer: Any, z: torch.Tensor, probs: np.ndarray, labels: np.ndarray) -> float:
    """The objective at the peer's answer, float64."""
    from probmetrics.distributions import CategoricalLogits

    n, k = probs.shape
    if hasattr(peer, "ts_"):
        answer, penalty = peer.predict_proba(probs), structured_penalty(peer, n, k)
    else:
        answer, penalty = peer.predict_proba_torch(CategoricalLogits(z)).get_probs().numpy(), 0.0
    return float(-np.log(answer[np.arange(n), labels].astype(np.float64)).mean() + penalty)


def structured_penalty(peer: Any, n: int, k: int) -> float:
    if hasattr(peer, "v_"):
        return float(k / n * (((peer.v_ - 1) ** 2).sum() + (peer.b_**2).sum()))
    change = peer.W_[:, :-1] - np.eye(k)
    diagonal = (np.diag(change) ** 2).sum()
    return float(
        k / n * (diagonal + (peer.W_[:, -1] ** 2).sum()) + k * (k - 1) / n * ((change**2).sum() - diagonal)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    processor.add_option(parser)
    options = parser.parse_args()
    processor.compile_for(options.cpu)
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    with use_backend("compiled"):
        # Compile before the clock starts.
        calibrators.TemperatureScaling().fit(*data(100, 3))
        ece_on_grid(*data(100, 3), None, n_bins=15)
        run(options)


def run(options: argparse.Namespace) -> None:
    n = 5_000 if options.quick else 50_000
    for k in (10, 100, 1000):
        bench_temperature(n, k, options.repeats)
    for k in (10, 100):
        bench_grid(n, k, options.repeats)
    for k in (10, 100):
        bench_linear(n, k, 1 if k == 100 else options.repeats)


if __name__ == "__main__":
    main()
