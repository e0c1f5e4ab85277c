"""Make the embedded predictions: a small network on scikit-learn's digits, trained until it is overconfident."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import equipoise
from equipoise import Predictions


def main(target: Path = Path(equipoise.__file__).parent / "data" / "embedded" / "digits.npz") -> None:
    inputs, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = inputs + rng.normal(scale=6.0, size=inputs.shape)
    ids = np.arange(len(labels))
    train, test = train_test_split(ids, test_size=1000, random_state=0, stratify=labels)
    network = MLPClassifier(hidden_layer_sizes=(64,), alpha=1e-6, max_iter=400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit(noisy[train], labels[train])
    hidden = np.maximum(noisy[test] @ network.coefs_[0] + network.intercepts_[0], 0)
    logits = (hidden @ network.coefs_[1] + network.intercepts_[1]).astype(np.float32)
    predictions = Predictions(logits=logits, labels=labels[test].astype(np.uint8), ids=test, split="test")
    equipoise.write_predictions(predictions, target)
    print(equipoise.score(predictions))


if __name__ == "__main__":
    main()
