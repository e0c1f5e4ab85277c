"""A normal distribution over the head's weights."""

import math

import pytest
import torch
from torch import nn

from equipoise.experiments import Execution, ScoringOptions, Spec, run
from equipoise.models import Network, mlp
from equipoise.objectives import LaplaceNetwork, LastLayerLaplace, Supervised
from equipoise.training import fit
from helpers import toys
from helpers.tiny_runs import TABLE


def linear(n_classes=3, width=2, *, bias=True):
    return Network(nn.Identity(), nn.Linear(width, n_classes, bias=bias)).double()


def rows(inputs):
    labels = torch.zeros(len(inputs), dtype=torch.long)
    return [toys.Rows(inputs, labels, torch.arange(len(inputs)))]


def dense_variance(network, inputs, query, precision):
    """The covariance of the logits from the whole Hessian, inverted; exact for one training row."""
    head = network.head
    hessian = 0
    for row in inputs:
        wide = torch.cat([row, torch.ones(1, dtype=row.dtype)]) if head.bias is not None else row
        probs = head(row).softmax(0)
        hessian = hessian + torch.kron(torch.diag(probs) - torch.outer(probs, probs), torch.outer(wide, wide))
    covariance = torch.linalg.inv(hessian + precision * torch.eye(len(hessian), dtype=row.dtype))
    found = []
    for row in query:
        wide = torch.cat([row, torch.ones(1, dtype=row.dtype)]) if head.bias is not None else row
        jacobian = torch.kron(torch.eye(head.out_features, dtype=row.dtype), wide)
        found.append(torch.diag(jacobian @ covariance @ jacobian.T))
    return torch.stack(found)


@pytest.mark.parametrize("bias", [True, False])
def test_equals_the_inverse_of_the_hessian_of_one_row(bias):
    torch.manual_seed(0)
    network = linear(bias=bias)
    laplace = LaplaceNetwork(network, prior_precision=0.7).double()
    seen, query = torch.randn(1, 2, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    laplace.fit(rows(seen))
    wanted = dense_variance(network, seen, query, 0.7)
    features, logits = laplace._parts(query)
    torch.testing.assert_close(laplace.variance(features), wanted)
    torch.testing.assert_close(laplace(query), logits / torch.sqrt(1 + math.pi / 8 * wanted))


def test_value_by_hand():
    """Without data the covariance is the prior's: the variance of a logit is |h|^2 / precision."""
    laplace = LaplaceNetwork(linear(bias=False), prior_precision=4.0).double()
    laplace.fit(rows(torch.zeros(1, 2, dtype=torch.float64)))
    variance = laplace.variance(torch.tensor([[2.0, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(variance, torch.ones(1, 3, dtype=torch.float64))


def test_the_same_row_many_times_counts_as_often():
    torch.manual_seed(0)
    network, seen = linear(), torch.randn(1, 2, dtype=torch.float64)
    laplace = LaplaceNetwork(network, prior_precision=1.0).double()
    laplace.fit(rows(seen.repeat(7, 1)))
    wanted = dense_variance(network, seen.repeat(7, 1), seen, 1.0)
    torch.testing.assert_close(laplace.variance(laplace._parts(seen)[0]), wanted)


def test_without_a_fit_and_with_a_firm_prior_it_is_the_network_itself():
    network, query = linear(), torch.randn(4, 2, dtype=torch.float64)
    laplace = LaplaceNetwork(network, prior_precision=1e12).double()
    assert torch.equal(laplace(query), network(query))
    laplace.fit(rows(query))
    torch.testing.assert_close(laplace(query), network(query))


def test_far_from_the_data_it_is_less_confident():
    torch.manual_seed(0)
    network = mlp(3, 2, hidden=(16,))
    objective = LastLayerLaplace(Supervised(network, nn.CrossEntropyLoss(), recipe=toys.RECIPE), toys.TRAIN)
    fit(objective, toys.TRAIN, epochs=20, hardware=toys.CPU, quiet=True)
    far = 50 * torch.nn.functional.normalize(toys.TUNE.inputs)
    for inputs, least in ((toys.TUNE.inputs, 0.0), (far, 0.01)):
        plain, averaged = (one(inputs).detach().softmax(1).amax(1) for one in (network, objective.network()))
        assert (averaged <= plain + 1e-6).all()
        assert float((plain - averaged).mean()) >= least


def test_the_prior_has_the_highest_marginal_likelihood():
    torch.manual_seed(0)
    network, seen = linear(), torch.randn(1, 2, dtype=torch.float64)
    laplace = LaplaceNetwork(network).double()
    laplace.fit(rows(seen))

    @torch.no_grad()
    def evidence(precision):
        wide = torch.cat([seen[0], torch.ones(1, dtype=torch.float64)])
        probs = network(seen)[0].softmax(0)
        hessian = torch.kron(torch.outer(wide, wide), torch.diag(probs) - torch.outer(probs, probs))
        weights = torch.cat([part.flatten() for part in network.head.parameters()])
        whole = hessian + precision * torch.eye(len(hessian), dtype=torch.float64)
        return float(
            -0.5 * precision * weights.square().sum()
            + 0.5 * len(weights) * math.log(precision)
            - 0.5 * torch.logdet(whole)
        )

    chosen = float(laplace.precision)
    assert all(evidence(chosen) >= evidence(factor * chosen) for factor in (0.5, 0.8, 1.3, 2.0))


def test_two_logits_of_1e4_stay_finite():
    network = linear(2)
    network.head.weight.data *= 1e4
    laplace = LaplaceNetwork(network).double()
    laplace.fit(rows(torch.randn(9, 2, dtype=torch.float64)))
    assert laplace(torch.randn(5, 2, dtype=torch.float64)).isfinite().all()


def test_mistakes():
    with pytest.raises(TypeError, match=r"equipoise\.models\.Network"):
        LaplaceNetwork(nn.Linear(2, 3))
    with pytest.raises(TypeError, match=r"must be nn\.Linear"):
        LaplaceNetwork(Network(nn.Identity(), nn.Conv2d(1, 3, 1)))
    with pytest.raises(ValueError, match="above 0"):
        LaplaceNetwork(linear(), prior_precision=0.0)
    with pytest.raises(ValueError, match="no batch"):
        LaplaceNetwork(linear()).fit([])


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_spec_trains_with_it(keep, tmp_path):
    recipe = {"name": "quick", "epochs": 2, "keep": keep}
    spec = Spec.from_table({**TABLE, "method": "last_layer_laplace", "recipe": recipe})
    folder = run(spec, tmp_path, scoring=ScoringOptions(n_resamples=20), execution=Execution(quiet=True))
    assert folder.status() == "finished"
