"""The Global-Pooling CNN for text: three convolutions over embedded words, and the maximum over time."""

from __future__ import annotations

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
        # One row of pixels, channels last, is how words lie in memory already: with two-dimensional
        # operations nothing is copied, and a training step on a CPU takes two thirds of the time.
        hidden = _convolve(words.transpose(1, 2).unsqueeze(2), self.conv1)
        hidden = _convolve(functional.max_pool2d(hidden, (1, _KERNEL), stride=1), self.conv2)
        hidden = _convolve(functional.max_pool2d(hidden, (1, _KERNEL), stride=1), self.conv3)
        features: Tensor = self.dropout(functional.relu(self.fc1(hidden.amax(dim=(2, 3)))))
        return features


def _convolve(row: Tensor, layer: nn.Conv1d) -> Tensor:
    return functional.relu_(functional.conv2d(row, layer.weight.unsqueeze(2), layer.bias))


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
