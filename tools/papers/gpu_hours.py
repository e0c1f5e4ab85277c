"""Count the training steps and operations of the papers' comparisons, and how long a GPU needs for them.

python tools/papers/gpu_hours.py            # a Markdown table, one row per comparison
python tools/papers/gpu_hours.py --tflops 50

Operations are counted by torch for one step of two images on a CPU, with the method's own networks, and multiplied by
the steps of the recipe. Hours assume that a GPU sustains the given number of operations per second.
"""

import argparse
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from equipoise.data.official import OFFICIAL
from equipoise.experiments import Spec, read_comparison
from equipoise.experiments.build.run_parts import build
from equipoise.experiments.specs.run import MethodSpec

SPECS = Path(__file__).resolve().parents[2] / "examples" / "specs"
PREFIXES = ("cals", "diff-dml", "dual-focal", "gamma-net", "losses", "newsgroups.", "voc", "weight-decay")
#: Rows that are held out of the official training set, where the options of the data do not say.
HELD_OUT = {
    "cifar10": 5_000,
    "cifar100": 5_000,
    "tiny_imagenet": 10_000,
    "voc2012": 293,
    "imagenet": 0,
    "imagenet_lt": 0,
}
N_NEWSGROUPS = 15_098
#: Side at which a network that would take minutes is counted; operations grow with the square.
SMALL_SIDE = {"deeplabv3_resnet34": (512, 128)}
#: Words of a document, in the papers and in the stand-in.
DOCUMENT, SHORT_DOCUMENT = 1000, 60
N_IMAGES = 2


def n_train(spec: Spec) -> int:
    """Return how many rows a run is trained on."""
    name, options = spec.data.name, spec.data.options
    if name == "newsgroups":
        return N_NEWSGROUPS
    both = [options.get(key) for key in ("tune", "calib")]
    held_out = HELD_OUT[name] if both == [None, None] else sum(value or 0 for value in both)
    return OFFICIAL[name].counts[0] - held_out


def n_steps(spec: Spec) -> int:
    """Return how many batches a run is trained on; the last, smaller batch of an epoch is left out."""
    recipe = spec.training
    return recipe.epochs * (n_train(spec) // recipe.batch_size)


def operations_per_row(spec: Spec) -> float:
    """Return the operations of a training step for one row: forward, backward, and whatever the method adds."""
    own_step = spec.method.name in OBJECTIVES
    method = replace(spec.method, title=None, recipe={}) if own_step else MethodSpec(name="ce")
    return _count(json.dumps(replace(spec, method=method, seed=0).to_table(), sort_keys=True))


#: Methods whose step costs more than a forward and a backward pass.
OBJECTIVES = (
    "deep_ensemble",
    "differentiated_mutual_learning",
    "gamma_net",
    "meta_label_smoothing",
    "mutual_learning",
)


@cache
def _count(text: str) -> float:
    table = json.loads(text)
    model = table["model"]["name"]
    whole, small = SMALL_SIDE.get(model, (1, 1))
    options = {
        key: value for key, value in table["data"].get("options", {}).items() if key in ("validation", "size")
    }
    options |= {"stand_in": True, **({"size": small} if model in SMALL_SIDE else {})}
    table["data"]["options"] = options
    table["model"].pop("weights", None)
    table["recipe"] |= {"batch_size": N_IMAGES, "epochs": 1, "precision": "32-true"}
    spec = Spec.from_table(table)
    built = build(spec)
    batch = next(
        iter(built.train(epoch=0, indices=None, start=0, rank=0, world_size=1, device=torch.device("cpu")))
    )
    built.objective.train()
    with FlopCounterMode(display=False) as counter:
        built.objective.step(batch)
    words = DOCUMENT / SHORT_DOCUMENT if built.data.kind == "text" else 1.0
    return counter.get_total_flops() * words * (whole / small) ** 2 / N_IMAGES


def rows(tflops: float):
    """Yield name, runs, steps, operations and hours of each comparison."""
    for path in sorted(SPECS.glob("*.toml")):
        if not path.name.startswith(PREFIXES):
            continue
        specs = read_comparison(path).specs
        steps = [n_steps(spec) for spec in specs]
        operations = sum(
            count * spec.training.batch_size * operations_per_row(spec)
            for count, spec in zip(steps, specs, strict=True)
        )
        yield path.stem, len(specs), sum(steps), operations, operations / (tflops * 1e12) / 3600


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tflops", type=float, default=30.0, help="operations per second that a GPU sustains, in 1e12"
    )
    tflops = parser.parse_args().tflops
    print(
        f"| comparison | trainings | steps, thousands | operations, 1e15 | hours at {tflops:g}e12 per second |"
    )
    print("|---|---|---|---|---|")
    for name, n_runs, steps, operations, hours in rows(tflops):
        print(
            f"| `{name}` | {n_runs} | {steps / 1e3:,.0f} | {operations / 1e15:,.0f} | {hours:,.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
