"""What the page of a method shows of its use: blocks of Python that tests run, specs and commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from equipoise.catalogue import Entry


def loss_usage(entry: Entry) -> str:
    """Write a block that builds the loss, calls it, and re-tunes it if it adapts."""
    lines = [
        "import torch",
        "",
        f"from equipoise.losses import {', '.join(sorted(one.__name__ for one in factories(entry)))}",
        "",
        f"loss = {built(entry)}",
        "logits, labels = torch.randn(8, 10, requires_grad=True), torch.randint(0, 10, (8,))",
        "loss(logits, labels).backward()",
    ]
    if "held_out" in entry.needs:
        lines += [
            "",
            "# once per epoch, with all held-out predictions:",
            "held_out_logits, held_out_labels = torch.randn(50, 10), torch.randint(0, 10, (50,))",
            "loss.update(held_out_logits, held_out_labels)",
        ]
    return python(lines)


def factories(entry: Entry) -> list[Callable[..., object]]:
    """Give the classes an entry is made of: several for a sum."""
    return [term.factory for term, _ in entry.factory.terms] if entry.sum else [entry.factory]


def built(entry: Entry) -> str:
    """Write the expression that builds an entry."""
    calls = []
    for term, factor in entry.factory.terms if entry.sum else [(entry, None)]:
        known = inspect.signature(term.factory).parameters
        options = {**term.options, **{key: value for key, value in entry.options.items() if key in known}}
        settings = [f"{key}={spelled(value)}" for key, value in options.items()]
        if "n_classes" in term.needs:
            settings.insert(0, "n_classes=10")
        times = "" if factor is None else f"{factor} * "
        calls.append(f"{times}{term.factory.__name__}({', '.join(settings)})")
    return " + ".join(calls)


def python(lines: list[str]) -> str:
    """Write lines as a block of Python, which tests run."""
    return "\n".join(["```python", *lines, "```"])


def calibrator_usage(entry: Entry) -> str:
    """Write a block that fits the calibrator on one split and applies it to another."""
    name = entry.factory.__name__
    settings = ", ".join(f"{key}={spelled(value)}" for key, value in entry.options.items())
    lines = [
        "import numpy as np",
        "",
        "from equipoise import Predictions",
        f"from equipoise.calibrators import {name}",
        "",
        "rng = np.random.default_rng(0)",
        "logits, labels = 3 * rng.normal(size=(600, 3)), rng.integers(0, 3, 600)",
        'calib = Predictions(logits=logits[:300], labels=labels[:300], split="calib")',
        'test = Predictions(logits=logits[300:], labels=labels[300:], split="test")',
        f"calibrator = {name}({settings}).fit(calib)",
        "print(calibrator.result)",
        "better = calibrator(test)",
    ]
    shell = f"```console\n$ equipoise calibrate calib.npz -o calibrator.json --method {entry.key}\n```"
    return python(lines) + "\n\n" + shell


def metric_usage(entry: Entry) -> str:
    """Write a block that computes the metric."""
    name = entry.factory.__name__
    settings = "".join(f", {key}={spelled(value)}" for key, value in entry.options.items())
    two = name == "out_of_distribution_auroc"
    call = f"{name}(predictions, other{settings})" if two else f"{name}(predictions{settings})"
    lines = [
        "import numpy as np",
        "",
        "from equipoise import Predictions",
        f"from equipoise.metrics import {name}",
        "",
        "rng = np.random.default_rng(0)",
        "predictions = Predictions(logits=rng.normal(size=(200, 10)), labels=rng.integers(0, 10, 200))",
        *(
            ["other = Predictions(logits=rng.normal(size=(200, 10)) / 2, labels=rng.integers(0, 10, 200))"]
            if two
            else []
        ),
        f"print({call})",
    ]
    return python(lines)


def spec_usage(key: str) -> Callable[[Entry], str]:
    """Return a writer of a run's spec in which one key names the entry."""

    def write(entry: Entry) -> str:
        usual = {"model": {"data": "cifar10"}}.get(key, {})
        spec = {
            "data": "digits",
            "model": "mlp",
            "method": "ce",
            "recipe": "quick",
            **(entry.partners or usual),
            key: entry.key,
        }
        return "\n".join(["```toml", *(f'{name} = "{value}"' for name, value in spec.items()), "```"])

    return write


#: What the examples of datasets that are read from a path of one's own call it.
OWN_FILES = {"npz": "mine.npz", "table": "mine.csv", "image_folder": "mine"}


def data_usage(entry: Entry) -> str:
    """Write a spec on a dataset; one with test rows only is a additional test set of what it was made from."""
    spec = {"data": entry.key, "model": "resnet20", "method": "ce", "recipe": "quick", **entry.partners}
    lines = [f'{name} = "{value}"' for name, value in spec.items()]
    if entry.key in OWN_FILES:
        lines[0] = f'data = {{ name = "{entry.key}", options = {{ path = "{OWN_FILES[entry.key]}" }} }}'
    command = "compare" if "data" in entry.partners else "train"
    if command == "compare":
        options = 'corruption = "fog", severity = 3'
        lines.append(f'shift = [{{ data = "{entry.key}", kind = "shifted", options = {{ {options} }} }}]')
    shell = f"```console\n$ equipoise {command} spec.toml\n```"
    return "\n".join(["```toml", *lines, "```"]) + "\n\n" + shell


def loaded(entry: Entry) -> str:
    """Write the call that loads a dataset."""
    own = OWN_FILES.get(entry.key)
    options = f', options={{"path": "{own}"}}' if own else ""
    return f'`equipoise.data.load("{entry.key}"{options})`'


def spelled(value: object) -> str:
    """Write a parameter as the formatter would, which also formats the blocks of these pages."""
    return f'"{value}"' if isinstance(value, str) else repr(value)
