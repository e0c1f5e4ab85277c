"""A task small enough for laws: three blobs, a tiny network, and one of every objective."""

import copy
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equipoise import losses
from equipoise.losses.avuc import AvUC
from equipoise.losses.mdca import MDCA
from equipoise.models import Network
from equipoise.objectives import (
    DeepEnsemble,
    DifferentiatedMutualLearning,
    DistilledEnsemble,
    GammaNet,
    LastLayerLaplace,
    MCDropout,
    MetaLabelSmoothing,
    MutualLearning,
    Pruned,
    SampleAdaptive,
    SnapshotEnsemble,
    Supervised,
    WeightAverage,
)
from equipoise.training import Cosine, Hardware, Objective, Optimizer, Recipe
from helpers.golden import tensors

CPU = Hardware(accelerator="cpu", devices=1)
N_TRAIN, N_TUNE, N_CLASSES = 40, 24, 3
RECIPE = Recipe(optimizer=Optimizer("SGD", lr=0.1, options={"momentum": 0.9}), schedule=Cosine())
#: What a source is called with for the first epoch of one process.
WHERE = {"epoch": 0, "indices": None, "start": 0, "rank": 0, "world_size": 1, "device": torch.device("cpu")}


@dataclass(frozen=True)
class Rows:
    inputs: Tensor
    targets: Tensor
    index: Tensor


class Blobs:
    """A source: blobs around three corners; the order depends on the epoch alone."""

    def __init__(
        self, n: int = N_TRAIN, *, batch_size: int = 16, seed: int = 0, shuffle: bool = True
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(n) % N_CLASSES
        corners = torch.tensor([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]])
        self.inputs = corners[self.labels] + torch.randn(n, 2, generator=generator)
        self.batch_size, self.shuffle = batch_size, shuffle

    def __call__(self, *, epoch, indices, start, rank, world_size, device) -> list[Rows]:
        rows = torch.arange(len(self.labels)) if indices is None else indices
        if self.shuffle:
            rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(epoch))]
        whole = [part for part in rows.split(self.batch_size) if len(part) > 1]  # batch norm needs two
        parts = [part.tensor_split(world_size)[rank] for part in whole[start:]]
        return [Rows(self.inputs[part], self.labels[part], part) for part in parts]


TRAIN, TUNE = Blobs(), Blobs(N_TUNE, seed=1, shuffle=False)


class Interrupting:
    """A source that sends this process a signal, or fails, when it has handed out some batches in all."""

    def __init__(self, source, *, after: int, action: Callable[[], None]) -> None:
        self.source, self.after, self.action, self.given = source, after, action, 0

    def __call__(self, **where) -> "Interrupting":
        self.batches = self.source(**where)
        return self

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Rows]:
        for batch in self.batches:
            self.given += 1
            if self.given == self.after:
                self.action()
            yield batch


def send(number: int = signal.SIGINT) -> Callable[[], None]:
    return lambda: signal.raise_signal(number)


def crash() -> None:
    raise RuntimeError("power cut")


def make_network(seed: int, *, plain: bool = False) -> Network:
    """Dropout and batch statistics make it hard to resume; ``plain`` has neither."""
    torch.manual_seed(seed)
    layers = [nn.Linear(2, 6)] if plain else [nn.Linear(2, 6), nn.BatchNorm1d(6), nn.Dropout(0.2)]
    return Network(nn.Sequential(*layers, nn.Tanh()), nn.Linear(6, N_CLASSES))


def supervised(loss: nn.Module, *, recipe: Recipe = RECIPE) -> Callable[[int], Objective]:
    return lambda seed: Supervised(make_network(seed), copy.deepcopy(loss), recipe=recipe)


#: name -> (seed -> objective)
OBJECTIVES: dict[str, Callable[[int], Objective]] = {
    "supervised": supervised(nn.CrossEntropyLoss()),
    "accumulating": supervised(
        nn.CrossEntropyLoss(),
        recipe=Recipe(
            optimizer=Optimizer("SGD", lr=0.02, options={"momentum": 0.9, "weight_decay": 5e-4}),
            accumulate=2,
            clip_norm=2,
            reduction="sum",
        ),
    ),
    "mutual_learning": lambda seed: MutualLearning(
        [make_network(seed), make_network(seed + 1), make_network(seed + 2)], recipe=RECIPE
    ),
    "differentiated_mutual_learning": lambda seed: DifferentiatedMutualLearning(
        make_network(seed),
        [make_network(seed + 1)],
        recipe=RECIPE,
        augment=lambda inputs: inputs + 0.1 * torch.randn_like(inputs),
    ),
    "deep_ensemble": lambda seed: DeepEnsemble(
        [Supervised(make_network(seed + k), losses.AdaFocalLoss(n_bins=5), recipe=RECIPE) for k in range(2)]
    ),
    "deep_ensemble_subsets": lambda seed: DeepEnsemble(
        [Supervised(make_network(seed + k), nn.CrossEntropyLoss(), recipe=RECIPE) for k in range(2)],
        subset=0.8,
        n_samples=N_TRAIN,
    ),
    "sample_adaptive": lambda seed: SampleAdaptive(
        make_network(seed), n_samples=N_TRAIN, n_classes=N_CLASSES, margin=3.0, recipe=RECIPE
    ),
    "gamma_net": lambda seed: GammaNet(make_network(seed), Blobs(10, batch_size=4, seed=2), recipe=RECIPE),
    "gamma_net_all": lambda seed: GammaNet(
        make_network(seed), Blobs(10, batch_size=4, seed=2), inner="all", ce_weight=1.0, recipe=RECIPE
    ),
    "meta_label_smoothing": lambda seed: MetaLabelSmoothing(
        make_network(seed), Blobs(10, batch_size=4, seed=2), form="matrix", recipe=RECIPE
    ),
    "sam": supervised(losses.BrierLoss(), recipe=Recipe(optimizer=RECIPE.optimizer, sam=0.05)),
    "asam": supervised(
        nn.CrossEntropyLoss(),
        recipe=Recipe(optimizer=RECIPE.optimizer, sam=1.0, sam_adaptive=True, clip_norm=1.0),
    ),
    "snapshot_ensemble": lambda seed: SnapshotEnsemble(
        supervised(nn.CrossEntropyLoss())(seed), epochs=3, n_snapshots=2
    ),
    "distilled_ensemble": lambda seed: DistilledEnsemble(
        OBJECTIVES["deep_ensemble"](seed),
        make_network(seed + 9),
        loss=losses.AdaFocalLoss(n_bins=5),
        recipe=RECIPE,
    ),
    "mc_dropout": lambda seed: MCDropout(supervised(nn.CrossEntropyLoss())(seed), n_passes=3),
    "last_layer_laplace": lambda seed: LastLayerLaplace(supervised(nn.CrossEntropyLoss())(seed), TRAIN),
    "ema": lambda seed: WeightAverage(
        supervised(losses.AdaFocalLoss(n_bins=5))(seed), decay=0.9, train=TRAIN
    ),
    "ema_accumulating": lambda seed: WeightAverage(
        supervised(nn.CrossEntropyLoss(), recipe=Recipe(accumulate=2))(seed), decay=0.9, train=TRAIN
    ),
    "swa": lambda seed: WeightAverage(OBJECTIVES["deep_ensemble"](seed), kind="swa", start=1, train=TRAIN),
    "pruned": lambda seed: Pruned(
        supervised(losses.FocalLoss(gamma=1.0))(seed), n_samples=N_TRAIN, period=1, fraction=0.2, momentum=0.5
    ),
}

#: Losses that re-tune themselves, as objectives.
ADAPTIVE: dict[str, Callable[[int], Objective]] = {
    "scheduled_focal": supervised(losses.FocalLoss(gamma=5.0, schedule={1: 3.0, 2: 1.0})),
    "adafocal": supervised(losses.AdaFocalLoss(n_bins=5)),
    "ada_dual_focal": supervised(losses.AdaDualFocalLoss(n_bins=5)),
    "cals_alm": supervised(losses.ClassAdaptiveLoss(n_classes=N_CLASSES, margin=1.0)),
    "cals_hr": supervised(losses.ClassAdaptiveHeuristicLoss(n_classes=N_CLASSES, margin=1.0)),
    "avuc": supervised(losses.FocalLoss(gamma=0.0) + 1.0 * AvUC()),
    "maxsup": supervised(losses.MaxSuppressionLoss(epochs=3)),
    "sum": supervised(losses.AdaFocalLoss(n_bins=5) + 0.5 * MDCA()),
}


def assert_equal(one, two, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """The same bits, in tensors and in nests of them; the same up to rounding, if a tolerance is given.

    Bits are owed only where the very same operations are done again on the same shapes.
    """
    assert type(one) is type(two)
    if isinstance(one, Tensor):
        torch.testing.assert_close(one, two, rtol=rtol, atol=atol, equal_nan=True)
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_equal(one[key], two[key], rtol=rtol, atol=atol)
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for first, second in zip(one, two, strict=True):
            assert_equal(first, second, rtol=rtol, atol=atol)
    else:
        assert one == two


def without_clock(history) -> list[dict[str, float]]:
    return [{name: value for name, value in row.items() if not name.endswith("seconds")} for row in history]


class Says(nn.Module):
    """A network with given answers: its weights are the logits of the samples, and its inputs their numbers.

    One step of size 1 then moves the weights by exactly the gradient with respect to the logits.
    """

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits.clone())

    def forward(self, inputs: Tensor) -> Tensor:
        return self.logits[inputs]


#: Weights move by minus the gradient, nothing else.
PLAIN_STEP = Recipe(optimizer=Optimizer("SGD", lr=1.0))


def slopes(parameters, value: Callable[[], float], *, width: float = 1e-5) -> list[Tensor]:
    """Return the derivative of a number with respect to every parameter, by central differences."""
    found = []
    for parameter in parameters:
        flat, slope = parameter.detach().view(-1), torch.zeros(parameter.numel(), dtype=parameter.dtype)
        for place in range(len(flat)):
            ends = []
            for shift in (width, -width):
                flat[place] += shift
                ends.append(value())
                flat[place] -= shift
            slope[place] = (ends[0] - ends[1]) / (2 * width)
        found.append(slope.view_as(parameter))
    return found


def batch_a() -> tuple[Tensor, Rows]:
    """The golden batch A: its logits, and a batch for :class:`Says`."""
    logits, labels = tensors("A")
    return logits.detach(), Rows(torch.arange(len(labels)), labels, torch.arange(len(labels)))


def said(logits: Tensor, labels: Tensor | None = None) -> Rows:
    """A batch for :class:`Says` networks over some logits."""
    index = torch.arange(len(logits))
    return Rows(index, torch.zeros(len(logits), dtype=torch.long) if labels is None else labels, index)
