"""Forward and backward of every loss, and whole steps of methods, as ratios to cross-entropy, all in one run.

    python benchmarks/losses.py [--sizes 1024x100 8192x1000] [--keys focal dual_focal] [--threads 1]
    python benchmarks/losses.py --steps     training steps of a small CNN, batch 128, instead of losses alone

Rounds go through all losses in turn, so that a busy machine slows them alike, and the lower quartile of each
counts. With one thread it is CPU time, which a busy machine disturbs least; with more it is wall time.
"""

from __future__ import annotations

import argparse
import time

import torch

from equipoise.catalogue import CATALOGUE
from equipoise.experiments import Spec
from equipoise.experiments.build.run_parts import build

LOSSES = {key: entry for key, entry in CATALOGUE["losses"].items() if not entry.sum}

SIZES = [(n, k) for n in (128, 1024, 8192) for k in (10, 100, 1000)]
#: The number of pairs of classes makes it another order of work; shown where it ends in reasonable time.
MOST_PAIRS = {"cpc": 2e8}
#: Losses with a maximum or a sort over classes.
WITH_MAX = {"dual_focal", "dual_focal_gra", "ada_dual_focal", "mbls", "cals_alm", "cals_hr", "maxsup", "acls"}


def seconds(loss: torch.nn.Module, logits: torch.Tensor, labels: torch.Tensor) -> float:
    logits.grad = None
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    loss(logits, labels).backward()
    return clock() - start


def ratios(keys: list[str], n: int, k: int, budget: float) -> dict[str, float]:
    logits = (4 * torch.randn(n, k)).requires_grad_()
    labels = torch.randint(0, k, (n,))
    losses = {"ce": torch.nn.CrossEntropyLoss()}
    for key in keys:
        if n * k * k <= MOST_PAIRS.get(key, torch.inf):
            losses[key] = LOSSES[key].make(**({"n_classes": k} if "n_classes" in LOSSES[key].needs else {}))
    times: dict[str, list[float]] = {key: [] for key in losses}
    end = time.perf_counter() + budget
    while len(times["ce"]) < 8 or time.perf_counter() < end:
        for key, loss in losses.items():
            times[key].append(seconds(loss, logits, labels))
    quartile = {key: sorted(taken)[len(taken) // 4] for key, taken in times.items()}
    return {key: quartile[key] / quartile["ce"] for key in losses} | {"ms": 1e3 * quartile["ce"]}


#: Spec keys of methods that change the step and not only the loss.
STEPS: dict[str, dict[str, object]] = {
    "ce": {},
    "ema": {"recipe": {"average": "ema"}},
    "swa": {"recipe": {"average": "swa"}},
    "sam": {"recipe": {"sam": 0.05}},
    "asam": {"recipe": {"sam": 1.0, "sam_adaptive": True}},
    "mixup": {"recipe": {"mixup": 1.0}},
    "cutmix": {"recipe": {"cutmix": 1.0}},
    "regmixup": {"recipe": {"regmixup": 20.0}},
    "bsce_gra": {"method": "bsce_gra"},
    "focal, detached": {"method": "focal_gra"},
    "maxsup": {"method": "maxsup"},
    "logit_norm": {"method": "logit_norm"},
    "acls": {"method": "acls"},
    "logit_l2": {"method": "logit_l2"},
    "poly1": {"method": "poly1"},
    "snapshot_ensemble": {"method": "snapshot_ensemble"},
    "last_layer_laplace": {"method": "last_layer_laplace"},
    "mc_dropout": {"method": "mc_dropout"},
    "members, 2": {"recipe": {"members": 2}},
    "distilled_ensemble, 2": {"method": "distilled_ensemble", "members": 2},
}


def step_ratios(budget: float) -> dict[str, tuple[float, float]]:
    """Return the time of a step, and of an epoch's end, as multiples of a step with cross-entropy."""
    made = {}
    for name, table in STEPS.items():
        method: object = table.get("method", "ce")
        if "members" in table:
            method = {"name": method, "options": {"n_members": table["members"]}}
        recipe = {"epochs": 10, **table.get("recipe", {})}  # type: ignore[dict-item]
        built = build(
            Spec.from_table({"data": "digits", "model": "resnet8", "method": method, "recipe": recipe})
        )
        where = {"indices": None, "start": 0, "rank": 0, "world_size": 1, "device": torch.device("cpu")}
        built.objective.plan_epoch(0)
        made[name] = (built.objective, list(built.train(epoch=0, **where)))
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in made}
    ends: dict[str, list[float]] = {name: [] for name in made}
    finish = time.perf_counter() + budget
    while len(times["ce"]) < 4 or time.perf_counter() < finish:
        for name, (objective, batches) in made.items():
            start = clock()
            for batch in batches:
                objective.step(batch)
            middle = clock()
            objective.prepare_evaluation()
            times[name].append((middle - start) / len(batches))
            ends[name].append(clock() - middle)
    quartile = {name: sorted(taken)[len(taken) // 4] for name, taken in times.items()}
    last = {name: sorted(taken)[len(taken) // 4] for name, taken in ends.items()}
    return {name: (quartile[name] / quartile["ce"], last[name] / quartile["ce"]) for name in made}


def limit(key: str, n: int, k: int) -> float:
    if k < 100 or n < 1024 or key == "cpc" or "+" in key:
        return float("inf")
    return 4.0 if key in WITH_MAX else 3.0


def cell(row: dict[str, float], key: str, n: int, k: int) -> str:
    if key not in row:
        return "-".rjust(11)
    return f"{row[key]:.2f}{'!' if row[key] > limit(key, n, k) else ' '}".rjust(11)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=[f"{n}x{k}" for n, k in SIZES])
    parser.add_argument("--keys", nargs="*", default=[key for key in LOSSES if key != "ce"])
    parser.add_argument("--budget", type=float, default=3.0, help="seconds per size")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", action="store_true", help="whole steps of methods instead of losses")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.steps:
        print(f"{'method':24}{'step':>8}{'end of epoch':>16}   in steps of cross-entropy")
        for name, (step, end) in step_ratios(options.budget).items():
            print(f"{name:24}{step:8.2f}{end:16.2f}")
        return
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes]
    table = [ratios(options.keys, n, k, options.budget) for n, k in sizes]
    print(f"{'batch x classes':18}" + "".join(f"{n}x{k} ".rjust(11) for n, k in sizes))
    print(f"{'ce, ms':18}" + "".join(f"{row['ms']:.3f} ".rjust(11) for row in table))
    for key in options.keys:
        print(f"{key:18}" + "".join(cell(row, key, n, k) for row, (n, k) in zip(table, sizes, strict=True)))
    print("! above the limit: 3 x cross-entropy (4 x with a maximum over classes) for n >= 1024, k >= 100")


if __name__ == "__main__":
    main()
