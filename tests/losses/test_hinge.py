from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from hypothesis import given

from equipoise.losses.hinge import hinge
from helpers.per_sample import assert_each, batches

LOGITS = torch.tensor([[12.0, 0.0, 3.0], [1.0, 4.0, -9.0]], dtype=torch.float64)
MARGINS = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)


def test_value_by_hand() -> None:
    # gaps (0, 12, 9) and (3, 0, 13); excess (0, 10, 6) and (2, 0, 10)
    assert_each(hinge(LOGITS, margins=MARGINS, weights=WEIGHTS), [5 + 12, 2 + 20])
    assert_each(hinge(LOGITS, margins=MARGINS, weights=WEIGHTS, power=2), [50 + 72, 4 + 200])


@given(batches(n_classes=(3, 3)))
def test_one_margin_for_all_is_that_margin_in_every_class(batch: tuple) -> None:
    one = hinge(batch[0], margins=torch.tensor(2.0).double(), weights=WEIGHTS)
    torch.testing.assert_close(one, hinge(batch[0], margins=torch.full((3,), 2.0).double(), weights=WEIGHTS))


def test_first_and_second_derivatives() -> None:
    logits = LOGITS.clone().requires_grad_()
    for power in (1, 2):
        assert torch.autograd.gradcheck(
            lambda z, p=power: hinge(z, margins=MARGINS, weights=WEIGHTS, power=p), logits
        )
        assert torch.autograd.gradgradcheck(
            lambda z, p=power: hinge(z, margins=MARGINS, weights=WEIGHTS, power=p), logits
        )


def test_the_first_of_tied_maxima_has_the_gradient() -> None:
    logits = torch.tensor([[5.0, 5.0, 0.0]], dtype=torch.float64, requires_grad=True)
    value = hinge(logits, margins=MARGINS, weights=WEIGHTS).sum()
    assert_each(torch.autograd.grad(value, logits)[0][0], [2.0, 0.0, -2.0])


def test_compiled_it_is_the_same() -> None:
    def both(logits: torch.Tensor) -> torch.Tensor:
        return sum(hinge(logits, margins=MARGINS, weights=WEIGHTS, power=p).sum() for p in (1, 2))

    torch._dynamo.reset()
    compiled = torch.compile(both, fullgraph=True, backend="eager")
    plain, traced = (LOGITS.clone().requires_grad_() for _ in range(2))
    both(plain).backward()
    compiled(traced).backward()
    torch.testing.assert_close(traced.grad, plain.grad)


def test_functional_transforms_see_through_it() -> None:
    def value(logits: torch.Tensor, power: int) -> torch.Tensor:
        return hinge(logits[None], margins=MARGINS, weights=WEIGHTS, power=power).sum()

    def plain(logits: torch.Tensor, power: int) -> torch.Tensor:
        return (torch.relu(logits.max() - logits - MARGINS) ** power) @ WEIGHTS

    def twice(function: Callable) -> Callable:
        return torch.func.jacrev(torch.func.grad(function))

    for power, transform in product((1, 2), (torch.func.grad, twice)):
        got = torch.func.vmap(transform(partial(value, power=power)))(LOGITS)
        wanted = torch.func.vmap(transform(partial(plain, power=power)))(LOGITS)
        torch.testing.assert_close(got, wanted)
