"""Adaptive losses of a user's own: recognized by ``update``, and refused if their state cannot be saved."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from equipoise.losses import AdaFocalLoss, BrierLoss, FocalLoss
from equipoise.losses.adaptive import adapts, check_saved_state, is_adaptive, made_up_rows
from equipoise.objectives import MutualLearning, Supervised
from equipoise.training import Recipe, fit
from helpers import toys

STEADY = Recipe(optimizer=toys.RECIPE.optimizer)


class Plain(nn.Module):
    """A loss that smooths labels more after every epoch, as someone who knows only the README would write it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("smoothing", torch.tensor(0.0))

    def forward(self, logits, labels):
        return cross_entropy(logits, labels, label_smoothing=float(self.smoothing))

    def update(self, logits, labels):
        self.smoothing += 0.1


class InAttribute(Plain):
    def __init__(self):
        super().__init__()
        self.smoothness = 0.0

    def update(self, logits, labels):
        self.smoothness += 0.1


class InArray(InAttribute):
    def __init__(self):
        super().__init__()
        self.smoothness = np.zeros(2)

    def update(self, logits, labels):
        self.smoothness[0] += 1


class InHiddenBuffer(Plain):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def update(self, logits, labels):
        self.seen += len(labels)


class InRandomNumbers(Plain):
    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng(0)

    def update(self, logits, labels):
        self.smoothing.fill_(self.random.random())


class Saved(InAttribute):
    """An attribute that is saved by the means torch has for it."""

    def get_extra_state(self):
        return {"smoothness": self.smoothness}

    def set_extra_state(self, state):
        self.smoothness = state["smoothness"]


class Rebuilt(Plain):
    def update(self, logits, labels):
        self.smoothing = torch.zeros(3)


def trained(loss, epochs=3, tune=True, folder=None):
    objective = Supervised(toys.make_network(0, plain=True), loss, recipe=STEADY)
    held_out = toys.Blobs(24, seed=1, shuffle=False) if tune else None
    history = fit(
        objective, toys.Blobs(), epochs=epochs, tune=held_out, hardware=toys.CPU, quiet=True, folder=folder
    )
    return objective, history


def test_a_loss_with_update_is_updated_once_per_epoch():
    loss = Plain()
    _, history = trained(loss)
    assert float(loss.smoothing) == pytest.approx(0.3)
    assert history.column("smoothing") == pytest.approx([0.0, 0.1, 0.2])


def test_a_term_of_a_sum_is_updated():
    mine = Plain()
    trained(BrierLoss() + 0.5 * (FocalLoss() + mine))
    assert float(mine.smoothing) == pytest.approx(0.3)


def test_it_is_updated_under_other_objectives():
    networks = [toys.make_network(seed, plain=True) for seed in (0, 1)]
    objective = MutualLearning(networks, loss=Plain(), recipe=toys.RECIPE)
    tune = toys.Blobs(24, seed=1, shuffle=False)
    fit(objective, toys.Blobs(), epochs=2, tune=tune, hardware=toys.CPU, quiet=True)
    found = [float(value) for name, value in objective.named_buffers() if name.endswith("smoothing")]
    assert found == pytest.approx([0.2, 0.2])


def test_a_resumed_run_goes_on_with_its_state(tmp_path):
    straight, _ = trained(Plain())
    trained(Plain(), epochs=1, folder=tmp_path)
    resumed, _ = trained(Plain(), folder=tmp_path)
    toys.assert_equal(straight.state_dict(), resumed.state_dict())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (InAttribute, "smoothness"),
        (InArray, "smoothness"),
        (InHiddenBuffer, "seen"),
        (InRandomNumbers, "random"),
    ],
)
def test_state_that_is_not_saved_is_refused_before_the_first_step(kind, name):
    objective = Supervised(toys.make_network(0, plain=True), kind(), recipe=STEADY)
    before = {key: value.clone() for key, value in objective.network().state_dict().items()}
    tune = toys.Blobs(24, seed=1, shuffle=False)
    message = rf"{kind.__name__}.update changes `{name}`.*register_buffer\('{name}'"
    with pytest.raises(TypeError, match=message) as caught:
        fit(objective, toys.Blobs(), epochs=1, tune=tune, hardware=toys.CPU, quiet=True)
    assert "\n" not in str(caught.value)
    toys.assert_equal(before, dict(objective.network().state_dict()))
    with pytest.raises(TypeError, match=f"changes `{name}`"):
        check_saved_state(0.5 * (BrierLoss() + kind()), *made_up_rows(3), where="test")


def test_state_that_does_not_load_again_is_refused():
    with pytest.raises(TypeError, match=r"Rebuilt after `update` does not load again"):
        check_saved_state(Rebuilt(), *made_up_rows(3), where="test")


def test_extra_state_is_saved_state():
    loss = Saved()
    trained(loss)
    assert loss.smoothness == pytest.approx(0.3)


def test_the_check_changes_neither_the_loss_nor_random_numbers():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    loss = InRandomNumbers()
    with pytest.raises(TypeError):
        check_saved_state(loss, *made_up_rows(3), where="test")
    assert float(loss.smoothing) == 0
    assert torch.rand(1) == expected


class Holder(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, logits, labels):
        return self.inner(logits, labels)


def test_an_adaptive_loss_inside_one_without_update_is_refused():
    with pytest.raises(TypeError, match=r"Holder holds AdaFocalLoss.*self\.inner\.update\(logits, labels\)"):
        trained(Holder(AdaFocalLoss()))
    trained(Holder(FocalLoss()), epochs=1)  # it has nothing to update


def test_an_update_of_other_arguments_is_refused():
    class Wrong(Plain):
        def update(self, predictions):
            pass

    with pytest.raises(TypeError, match=r"Wrong.update must take \(logits, labels\), got \(predictions\)"):
        trained(Wrong())


def test_a_loss_that_is_no_module_cannot_keep_state():
    class Function:
        def __call__(self, logits, labels):
            return cross_entropy(logits, labels)

        def update(self, logits, labels):
            pass

    with pytest.raises(TypeError, match="not a torch module"):
        trained(Function())


def test_what_adapts():
    assert is_adaptive(Plain())
    assert is_adaptive(FocalLoss())
    assert not is_adaptive(nn.ModuleDict())
    assert not is_adaptive(nn.CrossEntropyLoss())
    assert adapts(BrierLoss() + Plain())
    assert not adapts(BrierLoss() + 0.5 * FocalLoss())
