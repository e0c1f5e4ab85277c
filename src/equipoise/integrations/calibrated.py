"""A network and its calibrator as one module."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from equipoise.calibrators.base import Calibrator
from equipoise.calibrators.identity import Identity
from equipoise.core.errors import DataError
from equipoise.decisions.accept_rule import AcceptRule
from equipoise.decisions.scores import SCORES
from equipoise.training.batch_source import Inputs
from equipoise.training.network_call import as_logits, call_network

__all__ = ["CalibratedNetwork", "SelectiveNetwork", "calibrator_of_rule"]


@final
class CalibratedNetwork(nn.Module):
    """A network with a calibrator behind it: inputs to calibrated probabilities.

    Args:
        network: Gives logits ``(n, k)``, or dense ``(n, k, d1, ...)``; or an object or mapping with ``logits``, as
            models of transformers do. One column holds log-odds of class 1.
        calibrator: A fitted calibrator; None leaves the logits alone.

    Raises:
        NotFittedError: If the calibrator has not been fitted.

    Example:
        >>> import torch
        >>> from equipoise.calibrators import TemperatureScaling
        >>> halved = TemperatureScaling().fit([[3.0, 0.0]] * 4, [0, 0, 0, 1])
        >>> CalibratedNetwork(nn.Identity(), halved)(torch.tensor([[3.0, 0.0]]))
        tensor([[0.7500, 0.2500]])
    """

    def __init__(self, network: nn.Module, calibrator: Calibrator | None = None) -> None:
        super().__init__()
        self.network = network
        self.calibrator = (Identity() if calibrator is None else calibrator).as_module()

    def forward(self, inputs: Inputs | None = None, **named: Tensor) -> Tensor:
        """Return probabilities, classes on axis 1, for a tensor, a mapping of named tensors, or tensors by keyword."""
        given = named if inputs is None else inputs
        logits = as_logits(call_network(self.network, given), where="CalibratedNetwork")
        mapped: Tensor = self.calibrator(logits)
        return mapped.softmax(1) if self.calibrator.gives == "logits" else mapped


def calibrator_of_rule(
    rule: AcceptRule, calibrator: Calibrator | None = None, *, where: str
) -> Calibrator | None:
    """Return the calibrator that a network needs before a rule, if a network can apply the rule.

    Args:
        rule: A certified rule.
        calibrator: The calibrator that was given along; None or the identity for that of the rule.
        where: The start of a message.

    Raises:
        DataError: If the rule is not certified, has thresholds per group, orders predictions by a column, or was
            certified with another calibrator.
    """
    if not rule.certificate.certified or rule.certificate.threshold is None:
        raise DataError(
            f"{where}: expected a rule with one certified threshold, got {rule!r}. Certify one for all rows."
        )
    if rule.score not in SCORES:
        raise DataError(
            f"{where}: expected a rule on {', '.join(SCORES)}, got {rule.score!r}. A network has no other columns."
        )
    own: Calibrator | None = rule.calibrator
    given = None if isinstance(calibrator, Identity) else calibrator
    if given is not None and (own is None or own.to_artifact() != given.to_artifact()):
        raise DataError(
            f"{where}: the rule was certified {'without a' if own is None else 'with another'} calibrator, and the "
            f"model has {given.kind}. Certify it with this one, or choose the identity."
        )
    return own


@final
class SelectiveNetwork(nn.Module):
    """A network, its calibrator and a certified threshold: inputs to probabilities, and whether they are accepted.

    Args:
        network: As for :class:`CalibratedNetwork`.
        rule: A certified rule; its calibrator is applied first.

    Raises:
        DataError: If the rule is not certified, has thresholds per group, or orders predictions by a column.

    Example:
        >>> from equipoise.core import Predictions
        >>> from equipoise.decisions import certify_threshold
        >>> probs = torch.linspace(0.6, 1, 300)
        >>> rows = Predictions(probs=probs, labels=(probs > 0.7).long())
        >>> rule = certify_threshold(rows, max_error=0.05)
        >>> SelectiveNetwork(nn.Identity(), rule)(torch.tensor([[3.0, 0.0], [0.1, 0.0]]))[1]
        tensor([ True, False])
    """

    def __init__(self, network: nn.Module, rule: AcceptRule) -> None:
        super().__init__()
        self.calibrated = CalibratedNetwork(network, calibrator_of_rule(rule, where="SelectiveNetwork"))
        self.score, self.threshold = rule.score, float(rule.certificate.threshold or 0.0)

    def forward(self, inputs: Inputs | None = None, **named: Tensor) -> tuple[Tensor, Tensor]:
        """Return probabilities and whether each row is accepted."""
        probs = self.calibrated(inputs, **named)
        if self.score == "confidence":
            value = probs.amax(1)
        elif self.score == "margin":
            top = probs.topk(2, 1).values
            value = top[:, 0] - top[:, 1]
        else:
            entropy = torch.special.entr(probs).sum(1)
            value = 1 - entropy / torch.log(torch.tensor(float(probs.shape[1])))
        return probs, value >= self.threshold
