"""Losses against worked values and gradients, most of them checked against the authors' own code."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from equipoise import losses
from equipoise.losses.adafocal import adafocal_loss, next_gammas
from equipoise.losses.cals_alm import PENALTIES, constraints
from equipoise.losses.focal import focal_loss
from helpers.golden import CASES, double, tensors

#: Which module, with which options, each case is.
MODULES = {
    "ce.A": nn.CrossEntropyLoss(),
    "ls_uniform.A": losses.LabelSmoothingLoss(smoothing=0.05),
    "ls_offtarget.A": losses.LabelSmoothingLoss(smoothing=0.1, off_target=True),
    "brier.A": losses.BrierLoss(),
    "focal_g1.A": losses.FocalLoss(gamma=1),
    "focal_g2.A": losses.FocalLoss(gamma=2),
    "focal_g3.A": losses.FocalLoss(gamma=3),
    "focal_g3_detached.A": losses.FocalLoss(gamma=3, detach_weight=True),
    "flsd53.A": losses.SampleDependentFocalLoss(),
    "dual_focal_g2.A": losses.DualFocalLoss(gamma=2),
    "dual_focal_g5.A": losses.DualFocalLoss(),
    "inverse_focal_g2.A": losses.InverseFocalLoss(gamma=2),
    "ecp_sum.A": losses.EntropyRegularizedLoss(strength=0.1),
    "ecp_mean.A": losses.EntropyRegularizedLoss(strength=0.1, over_classes="mean"),
    "l1_logits.A": losses.LogitPenaltyLoss(strength=0.05),
    "l1_probs.A": losses.LogitPenaltyLoss(strength=0.1, on="probs"),
    "mbls.C": losses.MarginLoss(margin=10, strength=0.1, over_classes="mean"),
    "mbls_sum.C": losses.MarginLoss(margin=10, strength=0.1),
    "cpc.A": losses.PairwiseConstraintLoss(discrimination=10, exclusion=1, self_pairs=True),
    "focal_samplewise.A": losses.FocalLoss(gamma=torch.tensor([0.5, 1.0, 2.0, 3.0, 0.0])),
}


def close(got: torch.Tensor, wanted: object) -> None:
    # The file has 10 significant digits, so a number near 0 is known to 1e-10 of the largest.
    torch.testing.assert_close(got, double(wanted), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", MODULES)
def test_value_and_gradient(name: str) -> None:
    case, module = CASES[name], MODULES[name]
    logits, labels = tensors(case["batch"])
    value = module(logits, labels)
    expected = case["expected"]
    close(value, expected.get("mean", expected.get("loss")))
    close(torch.autograd.grad(value, logits)[0], case["grad_logits"])
    if "per_sample" in expected:
        module.reduction, reduction = "none", module.reduction
        close(module(logits, labels), expected["per_sample"])
        module.reduction = reduction


def test_gradient_with_respect_to_gamma() -> None:
    case = CASES["focal_samplewise.A"]
    logits, labels = tensors(case["batch"])
    gamma = double(case["params"]["gamma"]).requires_grad_()
    value = focal_loss(logits, labels, gamma=gamma).mean()
    grads = torch.autograd.grad(value, gamma)[0]
    close(grads[:4], case["expected"]["grad_gamma"][:4])
    # For gamma = 0 the file holds 0, but its own formula, -(1 - p)^gamma log(1 - p) log p / n at p = 1/2:
    torch.testing.assert_close(grads[4], -double(2.0).log().square() / 5)


def test_gradient_of_the_penalty_of_one_step_of_a_gamma_network() -> None:
    """The hyper-gradient needs the mixed second derivative in gamma and logits."""
    case = CASES["bilevel_gamma_sece"]
    params, expected = case["params"], case["expected"]
    inputs, weights, bias = double(params["X"]), double(params["W"]), double(params["b"])
    weights.requires_grad_()
    bias.requires_grad_()
    gamma = double(params["gamma"]).requires_grad_()
    inner = focal_loss(inputs @ weights.T + bias, torch.tensor(params["y"]), gamma=gamma).mean()
    grads = torch.autograd.grad(inner, (weights, bias), create_graph=True)
    weights, bias = (w - params["inner_lr"] * g for w, g in zip((weights, bias), grads, strict=True))
    confidence, predicted = (double(params["X_val"]) @ weights.T + bias).softmax(-1).max(-1)
    correct = (predicted == torch.tensor(params["y_val"])).double()
    kernel = torch.exp(-0.5 * ((confidence[:, None] - confidence) / params["bandwidth"]) ** 2)
    smooth = (kernel @ correct / kernel.sum(-1) - confidence).abs().mean()
    close(smooth, expected["meta_loss"])
    close(torch.autograd.grad(smooth, gamma)[0], expected["hypergrad_gamma"])


def test_adafocal_loss() -> None:
    case = CASES["adafocal_loss.A"]
    logits, labels = tensors(case["batch"])
    bins = case["params"]["bins"]
    edges, gammas = double([low for low, _, _ in bins] + [1.0]), double([gamma for _, _, gamma in bins])
    values = adafocal_loss(logits, labels, edges=edges, gammas=gammas)
    close(values, case["expected"]["per_sample"])
    close(torch.autograd.grad(values.sum(), logits)[0], case["grad_logits"])


def test_adafocal_update() -> None:
    params, expected = CASES["adafocal_update"]["params"], CASES["adafocal_update"]["expected"]
    gammas = next_gammas(double(params["gamma"]), double(params["gap_conf_minus_acc"]))
    close(gammas, expected["gamma_next"])


@pytest.mark.parametrize("name", ["phr", "p3"])
def test_penalties_of_cals(name: str) -> None:
    case = CASES[f"penalty_{name}"]
    h = double(case["params"]["z"]).requires_grad_()
    values = PENALTIES[name](h, double(case["params"]["lam"]), double(case["params"]["rho"]))
    close(values, case["expected"]["value"])
    close(torch.autograd.grad(values.sum(), h)[0], case["expected"]["derivative"])


def test_cals_loss() -> None:
    case = CASES["cals_loss.C"]
    logits, labels = tensors(case["batch"])
    loss = losses.ClassAdaptiveLoss(n_classes=3).double()
    loss.multipliers.copy_(double(case["params"]["lam"]))
    loss.rho.copy_(double(case["params"]["rho"]))
    close(constraints(logits, margin=10.0).detach(), case["expected"]["constraint"])
    value = loss(logits, labels)
    close(value, case["expected"]["loss"])
    close(torch.autograd.grad(value, logits)[0], case["grad_logits"])


def test_cals_updates() -> None:
    case = CASES["cals_updates"]
    loss = losses.ClassAdaptiveLoss(n_classes=3, rho_period=2, clip_each=True).double()
    for logits, wanted in zip(case["params"]["val_logits"], case["expected"]["epochs"], strict=True):
        loss.update(double(logits), torch.tensor([0, 1]))
        close(loss.multipliers, wanted["lam"])
        close(loss.rho, wanted["rho"])
        close(loss.previous, wanted["mean_constraint"])
