"""Batch-level terms against worked values and gradients."""

from functools import partial

import pytest
import torch

from equipoise import losses
from equipoise.losses import (
    avuc_penalty,
    dca_penalty,
    dece_penalty,
    huber_ca_penalty,
    kde_penalty,
    mdca_penalty,
    mmce_penalty,
    mmce_weighted_penalty,
    sece_penalty,
    soft_avuc_penalty,
    soft_ece_penalty,
)
from helpers.golden import CASES, double, tensors

SOFT_DECE = partial(dece_penalty, n_bins=5, rank_temperature=10.0, bin_temperature=0.05)

# case, name of the value in it, function, whether the case's gradient belongs to this value
TABLE = [
    ("mmce_sq.A", "mmce_squared", partial(mmce_penalty, squared=True), True),
    ("mmce_sq.A", "mmce", mmce_penalty, False),
    ("mmce_w.A", "value", partial(mmce_weighted_penalty, normalization="authors"), True),
    ("mmce_w_paper.A", "value", mmce_weighted_penalty, True),
    ("dca.A", "dca", dca_penalty, True),
    ("dca.A", "ce_plus_10dca", losses.CrossEntropyLoss() + 10.0 * losses.DCA(), False),
    ("mdca.A", "mdca", mdca_penalty, True),
    ("mdca.A", "focal1_plus_mdca", losses.FocalLoss(gamma=1.0) + 1.0 * losses.MDCA(), False),
    ("huber_ca_0.005.A", "value", partial(huber_ca_penalty, alpha=0.005), True),
    ("huber_ca_0.25.A", "value", partial(huber_ca_penalty, alpha=0.25), True),
    ("dece.A", "dece", partial(dece_penalty, authors_denominator=True), True),
    ("dece_soft.A", "dece", partial(SOFT_DECE, authors_denominator=True), True),
    ("sb_ece.A", "value", partial(soft_ece_penalty, least_mass=1e-5), True),
    ("sb_ece_lb.A", "squared", partial(soft_ece_penalty, binning="label"), True),
    ("avuc.A", "loss", partial(avuc_penalty, threshold=0.8), True),
    ("soft_avuc.A", "loss", soft_avuc_penalty, True),
    ("sece_h0.01_self.A", "sece", sece_penalty, True),
    ("sece_h0.1_self.A", "sece", partial(sece_penalty, bandwidth=0.1), True),
    *(
        (f"kde_ece_h{h}.A", f"{kind}_p{p}", partial(kde_penalty, bandwidth=h, kind=kind, power=p), first)
        for h in (0.1, 0.01)
        for kind in ("canonical", "top_label", "marginal")
        for p in (1, 2)
        for first in [kind == "canonical" and p == 1]
    ),
    *(
        (
            f"kde_ece_h{h}.A",
            "canonical_p1_den_clamped_1e-10",
            partial(kde_penalty, bandwidth=h, least_density=1e-10),
            False,
        )
        for h in (0.1, 0.01)
    ),
]


@pytest.mark.parametrize(("case_id", "name", "function", "has_gradient"), TABLE)
def test_value_and_gradient(case_id, name, function, has_gradient):
    case, (logits, labels) = CASES[case_id], tensors("A")
    value = function(logits, labels)
    assert value.item() == pytest.approx(case["expected"][name], rel=1e-8)
    if has_gradient:
        [gradient] = torch.autograd.grad(value, logits)
        torch.testing.assert_close(gradient, double(case["grad_logits"]), rtol=1e-8, atol=1e-11)
