"""A multi-layer perceptron for tables, digits and features made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from equipoise.models.network import Network, make_head

__all__ = ["mlp"]


def mlp(
    n_classes: int = 10, n_inputs: int = 64, *, hidden: Sequence[int] = (128, 128), dropout: float = 0.0
) -> Network:
    """Return linear layers with rectifiers between them.

    Args:
        n_classes: Number of classes.
        n_inputs: Numbers per sample; inputs of any shape are flattened to it.
        hidden: Widths of the hidden layers; ``()`` makes a linear classifier.
        dropout: Probability that a hidden number is zeroed while training.

    Returns:
        The network, with as many features as the last hidden layer is wide.

    Example:
        >>> import torch
        >>> mlp(n_classes=10, n_inputs=64)(torch.zeros(2, 8, 8)).shape
        torch.Size([2, 10])
        >>> mlp(n_classes=3, n_inputs=4, hidden=())
        Network(
          (body): Sequential(
            (0): Flatten(start_dim=1, end_dim=-1)
          )
          (head): Linear(in_features=4, out_features=3, bias=True)
        )
    """
    if n_inputs < 1 or any(width < 1 for width in hidden):
        raise ValueError(
            f"mlp: `n_inputs` and every width in `hidden` must be at least 1, "
            f"got {n_inputs} and {tuple(hidden)}. For a linear classifier pass hidden=()."
        )
    layers: list[nn.Module] = [nn.Flatten()]
    n_in = n_inputs
    for width in hidden:
        layers += [nn.Linear(n_in, width), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        n_in = width
    return Network(nn.Sequential(*layers), make_head(n_in, n_classes, where="mlp"))
