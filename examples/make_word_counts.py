"""Make a text task for a small network: how often 2,000 words stand in each post of 20 Newsgroups.

    EQUIPOISE_DATA=~/data python examples/make_word_counts.py words.npz
    equipoise compare examples/specs/newsgroups-choose.toml

The test posts are the official ones, which are later than the others.
"""

import sys

import numpy as np

from equipoise.data import load

N_WORDS = 2000


def main(target: str = "words.npz") -> None:
    data = load("newsgroups", options={"recipe": "bydate", "embedding": "none", "vocabulary_size": N_WORDS})
    tokens = data.inputs.numpy()
    counts = np.zeros((len(tokens), N_WORDS + 2), np.float32)
    np.add.at(counts, (np.arange(len(tokens))[:, None], np.minimum(tokens, N_WORDS + 1)), 1)
    words = np.log1p(counts[:, 1:])  # number 0 is padding
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-6)
    test = data.rows("test").numpy()
    rest = np.setdiff1d(np.arange(len(tokens)), test)
    labels = data.labels.numpy()
    np.savez_compressed(
        target, x_train=words[rest], y_train=labels[rest], x_test=words[test], y_test=labels[test]
    )
    print(
        f"{target}: {len(rest):,} posts to train and choose on, {len(test):,} to test, {words.shape[1]:,} numbers each"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
