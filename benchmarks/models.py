"""Training steps per second, channels-last against the old layout, interleaved in one run.

Usage: python benchmarks/models.py [--threads 1] [--repeats 5] [names ...]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import nn

from equipoise import models
from equipoise.models import Network

CASES = {
    "small_cnn": (models.small_cnn, (3, 32, 32), 128),
    "resnet8": (models.resnet8, (3, 32, 32), 128),
    "resnet20": (models.resnet20, (3, 32, 32), 128),
    "densenet40": (models.densenet40, (3, 32, 32), 32),
    "resnet18": (models.resnet18, (3, 32, 32), 32),
}


class OneDimensional(nn.Module):
    """The text network as it is usually written."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, words):
        hidden = words.transpose(1, 2)
        for layer in (self.body.conv1, self.body.conv2):
            hidden = nn.functional.max_pool1d(layer(hidden).relu_(), 5, stride=1)
        return self.body.fc1(self.body.conv3(hidden).relu_().max(dim=2).values).relu()


def step(network, inputs, labels):
    """Seconds of one forward and backward pass."""
    network.zero_grad()
    start = time.perf_counter()
    nn.functional.cross_entropy(network(inputs), labels).backward()
    return time.perf_counter() - start


def compare(name, new, old, inputs, repeats):
    labels = torch.arange(len(inputs)) % 10
    step(new, inputs, labels), step(old, inputs, labels)
    times = [(step(new, inputs, labels), step(old, inputs, labels)) for _ in range(repeats)]
    fast, slow = (min(column) for column in zip(*times, strict=True))
    ratio = statistics.median(b / a for a, b in times)
    print(f"| {name} | {len(inputs) / slow:.0f} | {len(inputs) / fast:.0f} | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*CASES, "global_pooling_cnn"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} thread(s), samples per second, forward and backward")
    print("| network | old layout | channels last | median ratio |")
    print("|---|---|---|---|")
    for name in options.names:
        torch.manual_seed(0)
        if name == "global_pooling_cnn":
            new = models.global_pooling_cnn()
            old = Network(OneDimensional(models.global_pooling_cnn().body), nn.Linear(128, 20))
            for n_words in (120, 300, 700):
                words = torch.randn(128, n_words, 100)
                compare(f"{name}, {n_words} words", new, old, words, options.repeats)
            continue
        factory, shape, batch = CASES[name]
        twin = factory()
        old = Network(twin.body, twin.head, channels_last=False)
        compare(name, factory(), old, torch.randn(batch, *shape), options.repeats)


if __name__ == "__main__":
    main()
