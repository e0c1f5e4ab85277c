"""Batch-level terms against worked values and gradients."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from equipoise.losses.avuc import avuc_penalty
from equipoise.losses.dca import dca_penalty
from equipoise.losses.dece import dece_penalty
from equipoise.losses.huber_ca import huber_ca_penalty
from equipoise.losses.kde import kde_penalty
from equipoise.losses.mdca import mdca_penalty
from equipoise.losses.mmce import mmce_penalty
from equipoise.losses.mmce_weighted import mmce_weighted_penalty
from equipoise.losses.sece import sece_penalty
from equipoise.losses.soft_avuc import soft_avuc_penalty
from equipoise.losses.soft_ece import soft_ece_penalty

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
CASES = {case["id"]: case for case in GOLDEN["cases"]}
SOFT_DECE = partial(dece_penalty, n_bins=5, rank_temperature=10.0, bin_temperature=0.05)

# case, name of the value in it, function, whether the case's gradient belongs to this value
TABLE = [
    ("mmce_sq.A", "mmce_squared", partial(mmce_penalty, squared=True), True),
    ("mmce_sq.A", "mmce", mmce_penalty, False),
    ("mmce_w.A", "value", partial(mmce_weighted_penalty, normalisation="authors"), True),
    ("mmce_w_paper.A", "value", mmce_weighted_penalty, True),
    ("dca.A", "dca", dca_penalty, True),
    ("mdca.A", "mdca", mdca_penalty, True),
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
    case, batch = CASES[case_id], GOLDEN["batches"]["A"]
    logits = torch.tensor(batch["logits"], dtype=torch.float64, requires_grad=True)
    value = function(logits, torch.tensor(batch["labels"]))
    assert value.item() == pytest.approx(case["expected"][name], rel=1e-8)
    if has_gradient:
        [gradient] = torch.autograd.grad(value, logits)
        expected = torch.tensor(case["grad_logits"], dtype=torch.float64)
        torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-11)
