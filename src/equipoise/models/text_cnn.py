"""The Global-Pooling CNN for text: three convolutions over embedded words, and the maximum over time."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from equipoise.models.network import Network, make_head

__all__ = ["RECEPTIVE_FIELD", "global_pooling_cnn"]

_KERNEL = 5
_WIDTH = 128
#: Words that one number before the global maximum sees. A batch whose padding is cut to this many words
#: beyond its longest document gives the same logits as the uncut one.
RECEPTIVE_FIELD = 5 * (_KERNEL - 1) + 1


class GlobalPoolingBody(nn.Module):
    """Convolve, rectify, pool; twice; convolve, rectify, take the maximum over time; one hidden layer."""

    def __init__(self, n_embedding: int, *, dropout: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(n_embedding, _WIDTH, _KERNEL)
        self.conv2 = nn.Conv1d(_WIDTH, _WIDTH, _KERNEL)
        self.conv3 = nn.Conv1d(_WIDTH, _WIDTH, _KERNEL)
        self.fc1 = nn.Linear(_WIDTH, _WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor) -> Tensor:
        """Return features ``(n, 128)`` of embedded words ``(n, t, d)``."""
        if words.dim() != 3 or words.shape[1] < RECEPTIVE_FIELD:
            raise ValueError(
                f"global_pooling_cnn: `words` must have shape (n, t, d) with t at least {RECEPTIVE_FIELD}, "
                f"got {tuple(words.shape)}. Embed the word numbers first, and pad short documents with zeros."
            )
        # One row of pixels, channels last, is how words lie in memory already: nothing is copied.
        training = self.training and words.is_cpu and not torch.is_autocast_enabled("cpu")
        convolve = RowConvolution.apply if training else _convolve
        row = words.transpose(1, 2).unsqueeze(2)
        for layer in (self.conv1, self.conv2):
            hidden = functional.relu_(convolve(row, layer.weight, layer.bias))
            row = functional.max_pool2d(hidden, (1, _KERNEL), stride=1)
        largest = (_largest if training else _largest_of_all)(row, self.conv3)
        features: Tensor = self.dropout(functional.relu(self.fc1(functional.relu(largest))))
        return features


def _convolve(row: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return functional.conv2d(row, weight.unsqueeze(2), bias)


def _largest_of_all(row: Tensor, layer: nn.Conv1d) -> Tensor:
    """Return the maximum over time ``(n, f)`` of a convolution."""
    return _convolve(row, layer.weight, layer.bias).amax(dim=(2, 3))


def _largest(row: Tensor, layer: nn.Conv1d) -> Tensor:
    """Return the same, with gradients that are computed only where the maxima are.

    They are found in about thirty places of a document, however long it is.
    """
    n, _, _, n_words = row.shape
    with torch.no_grad():
        places = _convolve(row, layer.weight, layer.bias).squeeze(2).argmax(dim=2)
    flat = places + n_words * torch.arange(n).unsqueeze(1)
    distinct, which = torch.unique(flat, return_inverse=True)
    windows = distinct.unsqueeze(1) + torch.arange(_KERNEL)
    seen = functional.embedding(windows, row.squeeze(2).transpose(1, 2).flatten(0, 1)).flatten(1)
    values = functional.linear(seen, layer.weight.transpose(1, 2).flatten(1), layer.bias)
    return values[which, torch.arange(values.shape[1])]


@final
class RowConvolution(torch.autograd.Function):
    """A convolution along one row of pixels whose gradients are products of matrices.

    The library behind torch takes three times as long for the weights' gradient of such a row as for the row itself.
    Here it is one product of matrices per place in the kernel, and the inputs' gradient is a convolution again. Second
    derivatives follow from these operations.
    """

    @staticmethod
    def forward(row: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the convolution ``(n, f, 1, t - k + 1)`` of ``(n, c, 1, t)`` with ``(f, c, k)``."""
        return _convolve(row, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        """Keep what the gradients need."""
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the gradients of row, weights and bias."""
        row, weight = ctx.saved_tensors
        more = weight.shape[2] - 1
        # Zeros behind every document: laid end to end, none reaches into the next.
        padded = functional.pad(gradient, (0, more))
        words, steps = (part.squeeze(2).transpose(1, 2).flatten(0, 1) for part in (row, padded))
        products = [steps[: len(steps) - place].t() @ words[place:] for place in range(more + 1)]
        if not ctx.needs_input_grad[0]:
            return None, torch.stack(products, 2), gradient.sum((0, 2, 3))
        turned = weight.flip(2).transpose(0, 1).unsqueeze(2)
        before = functional.conv2d(padded, turned, padding=(0, more))[..., : row.shape[3]]
        return before, torch.stack(products, 2), gradient.sum((0, 2, 3))


def global_pooling_cnn(n_classes: int = 20, n_embedding: int = 100, *, dropout: float = 0.0) -> Network:
    """Return the Global-Pooling CNN: 247,316 parameters at 20 classes and 100 numbers per word.

    The embedding is frozen and stays outside: inputs are embedded words ``(n, t, d)``, with zero vectors
    for padding and unknown words. Any number of words from 21 works.

    Args:
        n_classes: Number of classes.
        n_embedding: Numbers per word.
        dropout: Probability that a feature is zeroed while training. The original has
            0.3, MbLS and CALS none.

    Returns:
        The network, with features of 128 numbers.

    Example:
        >>> import torch
        >>> from equipoise.models import count_parameters
        >>> count_parameters(global_pooling_cnn())
        247316
        >>> global_pooling_cnn()(torch.zeros(2, 30, 100)).shape
        torch.Size([2, 20])

    Reference:
        Kumar et al. (2018), Trainable calibration measures; Mukhoti et al. (2020); Liu et al. (2023), CALS.

    Differs from the authors' code:
        Nothing known.
    """
    head = make_head(_WIDTH, n_classes, where="global_pooling_cnn")
    return Network(GlobalPoolingBody(n_embedding, dropout=dropout), head)
