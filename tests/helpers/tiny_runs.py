"""The smallest experiment that shows something, shared by tests."""

from equipoise.experiments import RunOptions

TABLE = {
    "data": {"name": "digits", "options": {"noise": 0.3}},
    "model": {"name": "mlp", "options": {"hidden": [16]}},
    "method": "ce",
    "recipe": {"name": "quick", "epochs": 2},
}
QUICK = RunOptions(n_resamples=20, quiet=True, accelerator="cpu", threads=1)
#: Fails when it is begun: there are no rows to judge epochs by.
FAILING = {
    **TABLE,
    "data": {"name": "digits", "options": {"tune": 0.0}},
    "recipe": {"name": "quick", "epochs": 1, "keep": "best"},
}
#: Passes every check before the first run, and fails in the midst of training.
DIVERGING = {**TABLE, "recipe": {"name": "quick", "epochs": 1, "optimizer": "sgd", "rate": 1e30}}
