"""A network, data, losses, an objective, maps and metrics that a user might have written in files of their own."""

CODE = """
import torch
from torch import nn
from equipoise.data import from_arrays
from equipoise.objectives import Supervised
from sizes import WIDTH


class Net(nn.Module):
    def __init__(self, n_classes, n_inputs, width=WIDTH):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, n_classes))

    def forward(self, x):
        return self.layers(x)


class TwoColumns(Net):
    def __init__(self, n_inputs):
        super().__init__(2, n_inputs)


def points(seed=0, n=400):
    generator = torch.Generator().manual_seed(7)
    labels = torch.randint(0, 3, (n,), generator=generator)
    return torch.randn(n, 5, generator=generator) + 1.5 * nn.functional.one_hot(labels, 5), labels


def dataset(seed=0):
    return from_arrays(*points(), name="points", seed=seed)


def images():
    x, y = points()
    grids = x[:, None, None, :].expand(-1, 2, 3, -1).contiguous()
    pairs = list(zip(grids, y.tolist()))
    return {"train": pairs[:240], "tune": pairs[240:280], "calib": pairs[280:320], "test": pairs[320:]}


def no_data():
    return 3


class Smoothed(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels, label_smoothing=self.smoothing)


def squares(logits, labels, power=2.0):
    one_hot = nn.functional.one_hot(labels, logits.shape[1])
    return (logits.softmax(1) - one_hot).abs().pow(power).sum(1)


def no_gradient(logits, labels):
    return torch.tensor(1.0)


def slow_objective(parts, factor=1.0):
    return Supervised(parts.make_network(), Smoothed(0.05 * factor), recipe=parts.recipe)
"""

#: How runs are judged: in a file of its own, since it is no part of what decides a run.
JUDGE = """
import torch
from equipoise.calibrators import TemperatureScaling


class Scaled:
    def __init__(self, steps=50):
        self.steps = steps

    def learn(self, logits, labels):
        factors = torch.logspace(-1, 1, self.steps, dtype=torch.float64)
        losses = torch.stack([torch.nn.functional.cross_entropy(f * logits, labels) for f in factors])
        return {"factor": factors[losses.argmin()], "offsets": torch.zeros(logits.shape[1])}

    def map(self, logits, parameters):
        return parameters["factor"] * logits + parameters["offsets"]


class NoNumbers(Scaled):
    def learn(self, logits, labels):
        return {"factor": float("nan")}


class OneColumn(Scaled):
    def map(self, logits, parameters):
        return logits[:, :1]


class Alike(TemperatureScaling):
    kind = "temperature"


def hits(predictions, above=0.0):
    return predictions.correct[predictions.confidence >= above].mean()


hits.facts = {"title": "hits", "better": "higher", "percent": True, "low": 0, "high": 1}


def nothing(predictions):
    return float("nan")


def said_wrong(predictions):
    return 1.0


said_wrong.facts = {"titel": "x"}


def noise(n=60):
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(1))


def wide():
    return torch.zeros(10, 7)


def two_classes():
    return torch.zeros(20, 5), torch.arange(20) % 2
"""


def write_code(folder):
    """Write the files into a folder, as a user has them beside a spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(CODE)
    (folder / "judge.py").write_text(JUDGE)
    (folder / "sizes.py").write_text("WIDTH = 8\n")
    return folder


def own_table(**changes):
    """A comparison in which network, data and losses are the user's own."""
    return {
        "name": "own",
        "data": "mine.py:points",
        "model": {"name": "mine.py:Net", "options": {"width": 6}},
        "method": ["ce", "mine.py:Smoothed", {"name": "mine:squares", "options": {"power": 1.5}}],
        "recipe": {"name": "quick", "epochs": 2},
        **changes,
    }
