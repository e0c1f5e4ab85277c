"""Words to numbers, as the Keras tokenizer of the papers does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

__all__ = ["encode_texts", "fit_vocabulary", "split_words", "strip_header"]

_SPACES = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))


def strip_header(post: str) -> str:
    r"""Remove everything up to the first blank line, if there is one.

    Example:
        >>> strip_header("From: me\n\nHello")
        '\n\nHello'
    """
    end = post.find("\n\n")
    return post[end:] if end > 0 else post


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case; punctuation but the apostrophe separates.

    Example:
        >>> split_words("Don't panic: (really)!")
        ["don't", 'panic', 'really']
    """
    return [word for word in text.lower().translate(_SPACES).split(" ") if word]


def fit_vocabulary(texts: Iterable[str], *, size: int = 20_000) -> dict[str, int]:
    """Number the most frequent words from one; zero is for padding.

    Args:
        texts: Those that may be looked at.
        size: Numbers below this are given, so that there are ``size - 1`` words, as in Keras.

    Returns:
        Word to number. Of equally frequent words the one seen first comes first.

    Example:
        >>> fit_vocabulary(["b a b", "c"], size=3)
        {'b': 1, 'a': 2}
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_words(text))
    ranked = sorted(counts.items(), key=lambda item: -item[1])[: size - 1]
    return {word: number for number, (word, _) in enumerate(ranked, start=1)}


def encode_texts(
    texts: Sequence[str], vocabulary: Mapping[str, int], *, length: int = 1000
) -> tuple[Tensor, Tensor]:
    """Turn texts into rows of numbers: unknown words are left out, zeros are put in front, the end is kept.

    Args:
        texts: What to encode.
        vocabulary: Word to number.
        length: Columns of the result.

    Returns:
        Numbers ``(n, length)`` as int32, and how many of each row are words.

    Example:
        >>> encode_texts(["b x a", "a b a b"], {"a": 1, "b": 2}, length=3)
        (tensor([[0, 2, 1],
                [2, 1, 2]], dtype=torch.int32), tensor([2, 3]))
    """
    rows = np.zeros((len(texts), length), dtype=np.int32)
    lengths = np.zeros(len(texts), dtype=np.int64)
    for place, text in enumerate(texts):
        known = [vocabulary[word] for word in split_words(text) if word in vocabulary][-length:]
        lengths[place] = len(known)
        if known:
            rows[place, -len(known) :] = known
    return torch.from_numpy(rows), torch.from_numpy(lengths)
