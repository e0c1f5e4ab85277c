import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.theory import dual_focal_phi, focal_phi

GAMMAS = [0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]
GRID = np.linspace(0, 1, 2001)


def test_value_by_hand():
    # gamma = 1: phi(q) = (1 - q) - q log q; at 1/2: 0.5 + 0.5 log 2
    assert focal_phi(0.5, gamma=1.0) == pytest.approx(0.5 + 0.5 * np.log(2))
    # gamma = 2, rival 1/4: b = 3/4, b^2 - 2 (1/2) b log(1/2)
    assert dual_focal_phi(0.5, 0.25, gamma=2.0) == pytest.approx(0.75**2 + 0.75 * np.log(2))


def test_gamma_zero_is_one_everywhere():
    np.testing.assert_array_equal(focal_phi(GRID, gamma=0.0), 1.0)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_phi_is_one_at_zero_and_zero_at_one(gamma):
    np.testing.assert_array_equal(focal_phi([0.0, 1.0], gamma=gamma), [1.0, 0.0])


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rival", [1e-6, 0.1, 0.3, 0.5])
def test_end_points_with_a_rival(gamma, rival):
    """Lemma 1 for C > 0: both ends are those of the weight, since q log q is 0 at both."""
    found = dual_focal_phi([0.0, 1.0], rival, gamma=gamma)
    np.testing.assert_allclose(found, [(1 + rival) ** gamma, rival**gamma], rtol=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_class_that_is_its_own_rival(gamma):
    """The case i = j: the weight is 1 whatever gamma is, and only its slope is left."""
    q = np.linspace(0.01, 1, 100)
    np.testing.assert_allclose(dual_focal_phi(q, q, gamma=gamma), 1 - gamma * q * np.log(q), rtol=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("rival", [0.0, 0.1, 0.3])
def test_phi_rises_once_then_falls(gamma, rival):
    inner = GRID[(rival <= GRID) & (GRID > 0)]
    steps = np.sign(np.diff(dual_focal_phi(inner, rival, gamma=gamma)))
    assert (np.diff(steps) <= 0).all()
    assert steps[-1] == -1


@given(st.floats(1e-6, 1), st.floats(0, 1), st.floats(0.05, 10))
def test_a_rival_never_lowers_phi(prob, share, gamma):
    dual, focal = dual_focal_phi(prob, share * prob, gamma=gamma), focal_phi(prob, gamma=gamma)
    assert dual >= focal * (1 - 1e-12)


@given(st.floats(0, 0.5), st.floats(0.05, 10))
def test_order_is_preserved_for_a_common_rival(rival, gamma):
    """The risk minimizer ranks the classes as the posterior does: q / phi(q, u) grows with q."""
    q = np.linspace(max(rival, 1e-4), 0.999, 500)
    assert (np.diff(q / dual_focal_phi(q, rival, gamma=gamma)) > 0).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_phi_over_q_is_the_slope_of_the_loss(gamma):
    q, step = np.linspace(0.05, 0.95, 19), 1e-6

    def loss(p):
        return -((1 - p) ** gamma) * np.log(p)

    slope = (loss(q + step) - loss(q - step)) / (2 * step)
    np.testing.assert_allclose(-slope, focal_phi(q, gamma=gamma) / q, rtol=1e-7)
