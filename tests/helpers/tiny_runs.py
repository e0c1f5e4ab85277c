"""The smallest experiment that shows something, shared by tests."""

from dataclasses import fields
from typing import Any

from equipoise.experiments import Execution, RunFolder, ScoringOptions

TABLE = {
    "data": {"name": "digits", "options": {"noise": 0.3}},
    "model": {"name": "mlp", "options": {"hidden": [16]}},
    "method": "ce",
    "recipe": {"name": "quick", "epochs": 2},
}


def quick_options(**changes: Any) -> dict[str, Any]:
    """Give the options of a quick run, with some of them replaced."""
    given = {"n_resamples": 20, "quiet": True, "accelerator": "cpu", "threads": 1, **changes}
    names = {field.name for field in fields(Execution)}
    return {
        "scoring": ScoringOptions(**{key: value for key, value in given.items() if key not in names}),
        "execution": Execution(**{key: value for key, value in given.items() if key in names}),
    }


QUICK = quick_options()
#: Fails when it is begun: there are no rows to judge epochs by.
FAILING = {
    **TABLE,
    "data": {"name": "digits", "options": {"tune": 0.0}},
    "recipe": {"name": "quick", "epochs": 1, "keep": "best"},
}
#: Passes every check before the first run, and fails in the midst of training.
DIVERGING = {**TABLE, "recipe": {"name": "quick", "epochs": 1, "optimizer": "SGD", "lr": 1e30}}
#: Everything that a run has to show, as patterns below its folder.
_RESULTS = ("predictions/*.npz", "calibrators/*", "scores/*.json", "scores.csv", "spec.toml")


def results_of(run: RunFolder) -> dict[str, bytes]:
    """Give the content of every file of results."""
    found = (file for pattern in _RESULTS for file in run.path.glob(pattern))
    return {str(file.relative_to(run.path)): file.read_bytes() for file in found}
