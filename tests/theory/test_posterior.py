from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from equipoise.theory import confidence_bias, recover_posterior
from helpers.numbers import softmax

GAMMAS = [0.5, 1.0, 3.0, 5.0]


def risk(logits, posterior, gamma, order=None):
    """Conditional risk of focal loss, or of dual focal loss within a given ordering of the classes."""
    q = softmax(logits)
    rival = np.zeros_like(q)
    if order is not None:
        if (np.diff(q[order]) >= 0).any():
            return 1e3
        rival[order[:-1]] = q[order[1:]]
    return -(posterior * (1 - q + rival) ** gamma * np.log(q)).sum()


def minimizer(posterior, gamma, order=None):
    start = np.log(posterior)
    if order is not None:
        start = np.empty(len(posterior))
        start[order] = np.linspace(2, 0, len(posterior))
    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 20000, "maxfev": 20000}
    found = minimize(risk, start, (posterior, gamma, order), method="Nelder-Mead", options=options)
    return softmax(found.x), found.fun


def best_of_all_orders(posterior, gamma):
    results = [minimizer(posterior, gamma, np.array(order)) for order in permutations(range(len(posterior)))]
    return min(results, key=lambda result: result[1])[0]


def test_value_by_hand():
    # gamma = 1: phi(1/2) = (1 + log 2) / 2, phi(1/4) = 3/4 + log(4) / 4
    ratio = 0.5 / ((1 + np.log(2)) / 2), 0.25 / (0.75 + np.log(4) / 4)
    expected = np.array([ratio[0], ratio[1], ratio[1]]) / (ratio[0] + 2 * ratio[1])
    found = recover_posterior(np.array([0.5, 0.25, 0.25]), loss="focal", gamma=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("loss", ["focal", "dual_focal"])
def test_cross_entropy_is_proper(loss):
    q = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(recover_posterior(q, loss=loss, gamma=0.0), q, rtol=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("posterior", [(0.5, 0.5), (0.8, 0.2), (0.5, 0.3, 0.2), (0.9, 0.06, 0.03, 0.01)])
def test_inverts_the_focal_risk(gamma, posterior):
    eta = np.array(posterior)
    q, _ = minimizer(eta, gamma)
    np.testing.assert_allclose(recover_posterior(q, loss="focal", gamma=gamma), eta, atol=1e-6)


@pytest.mark.parametrize("gamma", [1.0, 3.0, 5.0])
@pytest.mark.parametrize("posterior", [(0.6, 0.4), (0.93, 0.07), (0.55, 0.33, 0.12), (0.8, 0.19, 0.01)])
def test_inverts_the_dual_focal_risk(gamma, posterior):
    eta = np.array(posterior)
    q, _ = minimizer(eta, gamma, np.arange(len(eta)))
    np.testing.assert_allclose(recover_posterior(q, loss="dual_focal", gamma=gamma), eta, atol=1e-6)


def test_inverts_the_dual_focal_risk_with_the_rival_detached():
    q = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    eta = recover_posterior(q, loss="dual_focal", gamma=3.0, coupled=False)
    logits = q.log().requires_grad_()
    probs = logits.softmax(-1)
    rival = torch.tensor([0.3, 0.1, 0.0], dtype=torch.float64)
    (-(eta * (1 - probs + rival) ** 3 * probs.log()).sum()).backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(q), atol=1e-12, rtol=0)


@pytest.mark.parametrize("gamma", [1.0, 3.0, 5.0])
def test_the_minimizer_keeps_the_top_class(gamma):
    rng = np.random.default_rng(1)
    for n_classes in (2, 3):
        for _ in range(4):
            eta = rng.dirichlet(np.full(n_classes, 2.0))
            assert best_of_all_orders(eta, gamma).argmax() == eta.argmax()


def test_the_gradient_through_the_rival_can_swap_lower_classes():
    """A counterexample to the order claim of theorem 1, which holds for a common rival only (see test_phi)."""
    eta = np.array([0.6777, 0.2042, 0.0653, 0.0528])
    q = best_of_all_orders(eta, 5.0)
    assert q.argsort().tolist() == [2, 3, 1, 0]
    np.testing.assert_allclose(recover_posterior(q, loss="dual_focal", gamma=5.0), eta, atol=1e-6)


def random_rows(seed=0, n_rows=50, n_classes=7):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), n_rows)


@pytest.mark.parametrize("loss", ["focal", "dual_focal"])
@given(gamma=st.floats(0, 10), seed=st.integers(0, 10))
def test_rows_are_probabilities_and_classes_have_no_names(loss, gamma, seed):
    rows = random_rows(seed, n_rows=5)
    found = recover_posterior(rows, loss=loss, gamma=gamma)
    np.testing.assert_allclose(found.sum(-1), 1)
    assert (found >= 0).all()
    flipped = recover_posterior(rows[:, ::-1], loss=loss, gamma=gamma)[:, ::-1]
    np.testing.assert_allclose(found, flipped, rtol=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_focal_recovery_keeps_the_order_of_all_classes(gamma):
    rows = random_rows()
    found = recover_posterior(rows, loss="focal", gamma=gamma)
    np.testing.assert_array_equal(found.argsort(-1), rows.argsort(-1))


@pytest.mark.parametrize("loss", ["focal", "dual_focal"])
@pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0, 10.0])
def test_saturated_and_tied_rows_stay_exact(loss, gamma):
    rows = np.array([[1.0, 0.0, 0.0], [1 - 1e-16, 1e-16, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    found = recover_posterior(rows, loss=loss, gamma=gamma)
    np.testing.assert_allclose(found[0], rows[0], atol=1e-12)
    np.testing.assert_allclose(found[1].argmax(), 0)
    np.testing.assert_allclose(found[2:], rows[2:], atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_torch_in_torch_out(dtype):
    rows = torch.tensor(random_rows()).to(dtype)
    for function in (recover_posterior, confidence_bias):
        found = function(rows, loss="dual_focal", gamma=3.0)
        assert isinstance(found, torch.Tensor)
        assert found.dtype == dtype
    same = recover_posterior(rows.double().numpy(), loss="dual_focal", gamma=3.0)
    torch.testing.assert_close(
        recover_posterior(rows, loss="dual_focal", gamma=3.0), torch.tensor(same).to(dtype)
    )


def test_arrays_that_torch_cannot_view():
    rows = random_rows()
    rows.setflags(write=False)
    turned = recover_posterior(rows[:, ::-1], loss="focal", gamma=2.0)[:, ::-1]
    np.testing.assert_allclose(turned, recover_posterior(rows, loss="focal", gamma=2.0))


def test_single_precision_arrays_stay_single():
    assert recover_posterior(random_rows().astype(np.float32), loss="focal", gamma=2.0).dtype == np.float32


def test_refusals_carry_the_remedy():
    with pytest.raises(ValueError, match=r"Logits\? Pass softmax"):
        recover_posterior(np.array([[3.0, -1.0]]), loss="focal", gamma=1.0)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        recover_posterior(np.array([0.5, 0.5]), loss="focal", gamma=-1.0)
    with pytest.raises(ValueError, match="Did you mean 'dual_focal'"):
        recover_posterior(np.array([0.5, 0.5]), loss="dualfocal", gamma=1.0)
