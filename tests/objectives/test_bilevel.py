"""The step ahead, by itself: a linear head with two features, and what the batches around it say."""

import pytest
import torch
from torch import nn

from equipoise.losses.dece import dece_penalty
from equipoise.losses.focal import focal_loss
from equipoise.losses.sece import sece_penalty
from equipoise.objectives.bilevel import FeaturesAndLogits, look_ahead, pure_forward
from helpers import toys
from helpers.golden import CASES, double


def linear_task(case):
    """Return a head, and the inner and outer samples of a golden case."""
    params = CASES[case]["params"]
    head = nn.Linear(2, 3, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(double(params["W"]))
        head.bias.copy_(double(params["b"]))
    inner = double(params["X"]), torch.tensor(params["y"])
    outer = double(params["X_val"]), torch.tensor(params["y_val"])
    return head, inner, outer, params


def outer_after_step(head, inner, outer, inner_loss, outer_loss, rate):
    ahead = look_ahead(head, inner[0], lambda logits: inner_loss(logits, inner[1]), lr=rate)
    return outer_loss(pure_forward(head, ahead, outer[0]), outer[1])


OUTER = {
    "ce": nn.functional.cross_entropy,
    "ce_plus_half_dece_soft": lambda logits, labels: (
        nn.functional.cross_entropy(logits, labels)
        + 0.5 * dece_penalty(logits, labels, n_bins=5, rank_temperature=10.0, bin_temperature=0.05)
    ),
}


@pytest.mark.parametrize("outer_name", OUTER)
def test_golden_hypergradient_of_label_smoothing(outer_name):
    case = f"bilevel_ls.{outer_name}.mean"
    head, inner, outer, params = linear_task(case)
    amount = torch.tensor(params["label_smoothing"], dtype=torch.float64, requires_grad=True)

    def smoothed(logits, labels):
        hard = nn.functional.one_hot(labels, 3).double()
        return nn.functional.cross_entropy(logits, (1 - amount) * hard + amount / 3)

    value = outer_after_step(head, inner, outer, smoothed, OUTER[outer_name], params["inner_lr"])
    [gradient] = torch.autograd.grad(value, amount)
    expected = CASES[case]["expected"]
    assert value.item() == pytest.approx(expected["meta_loss"], rel=1e-6)
    assert gradient.item() == pytest.approx(expected["hypergrad"], rel=1e-6)


def test_golden_hypergradient_of_gamma():
    head, inner, outer, params = linear_task("bilevel_gamma_sece")
    gamma = double(params["gamma"]).requires_grad_()
    value = outer_after_step(
        head,
        inner,
        outer,
        lambda logits, labels: focal_loss(logits, labels, gamma=gamma).mean(),
        lambda logits, labels: sece_penalty(logits, labels, bandwidth=params["bandwidth"]),
        params["inner_lr"],
    )
    [gradient] = torch.autograd.grad(value, gamma)
    expected = CASES["bilevel_gamma_sece"]["expected"]
    assert value.item() == pytest.approx(expected["meta_loss"], rel=1e-6)
    assert gradient.tolist() == pytest.approx(expected["hypergrad_gamma"], rel=1e-6)


def test_hypergradient_by_finite_differences():
    head, inner, outer, params = linear_task("bilevel_gamma_sece")

    def value(gamma):
        return outer_after_step(
            head,
            inner,
            outer,
            lambda logits, labels: focal_loss(logits, labels, gamma=gamma).mean(),
            lambda logits, labels: sece_penalty(logits, labels, bandwidth=0.2),
            0.5,
        )

    assert torch.autograd.gradcheck(value, double(params["gamma"]).requires_grad_())


def test_a_step_ahead_by_hand():
    # L = 2 w, so w' = w - 0.1 * 2.
    layer = nn.Linear(1, 1, bias=False)
    ahead = look_ahead(layer, torch.ones(1, 1), lambda output: 2 * output.sum(), lr=0.1)
    assert float(ahead["weight"].detach()) == pytest.approx(float(layer.weight.detach()) - 0.2)


def test_without_a_step_nothing_changes():
    head, inner, outer, _ = linear_task("bilevel_gamma_sece")
    still = outer_after_step(
        head, inner, outer, nn.functional.cross_entropy, nn.functional.cross_entropy, 0.0
    )
    assert still.item() == pytest.approx(nn.functional.cross_entropy(head(outer[0]), outer[1]).item())


def test_nothing_leaks_into_the_module():
    module = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    inputs, labels = torch.randn(6, 2), torch.tensor([0, 1, 2, 0, 1, 2])
    scale = torch.ones((), requires_grad=True)
    ahead = look_ahead(
        module, inputs, lambda logits: scale * nn.functional.cross_entropy(logits, labels), lr=0.1
    )
    nn.functional.cross_entropy(pure_forward(module, ahead, inputs), labels).backward()
    assert scale.grad is not None
    assert all(parameter.grad is None for parameter in module.parameters())
    toys.assert_equal(dict(module.state_dict()), before)


def test_refuses_a_network_without_parts():
    with pytest.raises(TypeError, match=r"equipoise.models.Network\(body, head\)"):
        FeaturesAndLogits(nn.Linear(2, 2))
