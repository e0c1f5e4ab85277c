"""Images per second of whole training loops, interleaved in one run, each in a process of its own.

Loops that train the same network on the same number of augmented images (crop with padding, flip, normalize):

* research: the loop of the research repositories. Images are augmented one by one in a DataLoader, the network is
  written as there (rectified into new memory, before a pool) and in torch's old layout, and the loss is read after
  every batch;
* our network: the same loop around the network as we write it, of which it gives the same logits;
* bare: our batches and layout in a loop written by hand, with nothing around it;
* ours: ``fit``;
* kept: ``fit`` with ``Hardware(keep_memory=True)``;
* convolutions: those of the network alone, forward and backward, in memory that is there already. Whoever uses those
  of torch is no faster: what the research loop takes more is the most that any loop can gain.

On one thread times are of the processor, which others on the machine change least; on several they are of the clock,
because threads that wait count as working. The loops take turns; speeds are medians over the turns, ratios are medians
of the ratios within a turn, with the middle half of these behind them.

Usage: python benchmarks/training.py [--threads 1] [--repeats 15] [--batches 4] [networks ...]
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import time
from functools import partial
from itertools import chain

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader

from equipoise import models
from equipoise.catalogue import CATALOGUE
from equipoise.data import Augment, batches, from_arrays
from equipoise.models import Network
from equipoise.objectives import Parts, Supervised
from equipoise.training import FOCAL_RECIPE, Hardware, fit

OBJECTIVES = CATALOGUE["objectives"]

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
BATCH = 128
CPU = Hardware(accelerator="cpu", devices=1)
KEPT = Hardware(accelerator="cpu", devices=1, keep_memory=True)
LOOPS = ("research", "our network", "bare", "ours", "kept", "convolutions")
EPOCHS = 2
NETWORKS = {"small_cnn": models.small_cnn, "resnet20": models.resnet20}


def make_images(n_batches):
    """Return noise that looks like CIFAR to a loop: uint8 images and ten classes."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (n_batches * BATCH, 3, 32, 32), dtype=np.uint8)
    return images, generator.integers(0, 10, len(images))


class OneByOne(torch.utils.data.Dataset):
    """Augments images as the usual chain of transforms does."""

    def __init__(self, images, labels):
        self.images, self.labels = images.transpose(0, 2, 3, 1).copy(), labels
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        image = ImageOps.expand(Image.fromarray(self.images[row]), border=4)
        top, left = random.randint(0, 8), random.randint(0, 8)
        image = image.crop((left, top, left + 32, top + 32))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return pixels.sub_(self.mean).div_(self.std), int(self.labels[row])


class AsUsual(nn.Module):
    """Our network, with its weights, in the order and with the copies in which repositories write it."""

    def __init__(self, network):
        super().__init__()
        self.body, self.head = network.body, network.head

    def forward(self, images):
        walk = self.in_sequence if isinstance(self.body, nn.Sequential) else self.residual
        return self.head(nn.functional.adaptive_avg_pool2d(walk(images), 1).flatten(1))

    def in_sequence(self, hidden):
        layers = [layer for layer in self.body if isinstance(layer, nn.Conv2d | nn.BatchNorm2d)]
        n_pools = sum(isinstance(layer, nn.MaxPool2d) for layer in self.body)
        for number, (convolution, norm) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
            hidden = nn.functional.relu(norm(convolution(hidden)))
            if number < n_pools:
                hidden = nn.functional.max_pool2d(hidden, 2)
        return hidden

    def residual(self, hidden):
        hidden = nn.functional.relu(self.body.bn1(self.body.conv1(hidden)))
        for block in chain(self.body.layer1, self.body.layer2, self.body.layer3):
            inner = nn.functional.relu(block.bn1(block.conv1(hidden)))
            inner = block.bn2(block.conv2(inner))
            inner += block.shortcut(hidden)
            hidden = nn.functional.relu(inner)
        return hidden


def in_old_layout(network, *, as_usual):
    """Return the network in torch's old layout, written as usual if asked for, which must not change what it says."""
    plain = Network(network.body, network.head, channels_last=False)
    if not as_usual:
        return plain
    usual, images = AsUsual(plain), torch.randn(8, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(usual(images), plain(images))
    return usual


def hand_written(network, read_loss):
    """Return an epoch of the plain loop: summed loss, clipped gradient, SGD."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

    def epoch(loader):
        total = 0.0
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(network(inputs), labels, reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 2.0)
            optimizer.step()
            if read_loss:
                total += loss.item()

    return epoch


def now():
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def timed(call):
    start = now()
    call()
    return now() - start


def fit_seconds(objective, source, *, epochs, hardware=CPU):
    """Seconds per epoch of ``fit``; setting up, which is once per run, is left out."""
    began = []

    def stamped(**where):
        began.append(now())
        return source(**where)

    fit(objective, stamped, epochs=epochs, hardware=hardware, quiet=True)
    return (now() - began[0]) / epochs


def convolutions(network):
    """Return one step of a network's convolutions, backward to weights and, but for the first, to inputs."""
    steps = []

    def note(layer, inputs, output):
        wanted = [bool(steps), True, False]
        options = (layer.stride, layer.padding, layer.dilation)
        steps.append((inputs[0], layer.weight, torch.randn_like(output), options, wanted))

    hooks = [layer.register_forward_hook(note) for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    network(torch.randn(BATCH, 3, 32, 32))
    for hook in hooks:
        hook.remove()

    @torch.no_grad()
    def step():
        for inputs, weight, gradient, options, wanted in steps:
            nn.functional.conv2d(inputs, weight, None, *options)
            torch.ops.aten.convolution_backward(
                gradient, inputs, weight, None, *options, False, [0, 0], 1, wanted
            )

    return step


def make_loop(loop, name, options):
    """Return a function that runs one of the loops for some epochs and gives the seconds of one."""
    images, labels = make_images(options.batches)
    network = NETWORKS[name]()
    if loop == "convolutions":
        KEPT.make_fabric()
        step = convolutions(network)
        return lambda: timed(lambda: [step() for _ in range(options.batches)])
    if loop in {"research", "our network"}:
        loader = DataLoader(OneByOne(images, labels), batch_size=BATCH, shuffle=True)
        epoch = hand_written(in_old_layout(network, as_usual=loop == "research"), read_loss=True)
        return lambda: timed(lambda: [epoch(loader) for _ in range(EPOCHS)]) / EPOCHS
    rows = torch.arange(len(images))
    dataset = from_arrays(
        torch.from_numpy(images),
        torch.from_numpy(labels),
        name="noise",
        splits={"train": rows},
        mean=MEAN,
        std=STD,
    )
    source = partial(batches, dataset, "train", batch_size=BATCH, augment=Augment(crop_padding=4, flip=True))
    if loop == "bare":
        epoch = hand_written(network, read_loss=False)

        def bare():
            for number in range(EPOCHS):
                epoch((batch.inputs, batch.targets) for batch in source(epoch=number))

        return lambda: timed(bare) / EPOCHS
    objective = Supervised(network, nn.CrossEntropyLoss(), recipe=FOCAL_RECIPE)
    return lambda: fit_seconds(objective, source, epochs=EPOCHS, hardware=KEPT if loop == "kept" else CPU)


def serve(connection, loop, name, options):
    """A process of its own for each loop: allocator settings and warm caches are nobody else's."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    run = make_loop(loop, name, options)
    run()
    while connection.recv():
        connection.send(run())


def compare_loops(options):
    context = multiprocessing.get_context("spawn")
    unit = "CPU second" if options.threads == 1 else "second"
    print(
        f"| network | research, images per {unit} | bare | ours | ours / research | kept / research "
        "| ours / research with our network | kept / the same | convolutions alone / the same | over bare |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.networks:
        ends = {}
        for loop in LOOPS:
            ends[loop], other = context.Pipe()
            context.Process(target=serve, args=(other, loop, name, options), daemon=True).start()
        times = [{loop: ask(end) for loop, end in ends.items()} for _ in range(options.repeats)]
        for end in ends.values():
            end.send(False)
        speed = {
            loop: options.batches * BATCH / statistics.median(row[loop] for row in times) for loop in LOOPS
        }
        faster = (
            quartiles(row[other] / row[loop] for row in times)
            for other, loop in (
                ("research", "ours"),
                ("research", "kept"),
                ("our network", "ours"),
                ("our network", "kept"),
                ("our network", "convolutions"),
            )
        )
        shown = " | ".join(f"{middle:.2f} ({low:.2f} to {high:.2f})" for low, middle, high in faster)
        over = quartiles(100 * (row["ours"] / row["bare"] - 1) for row in times)
        print(
            f"| {name} | {speed['research']:.0f} | {speed['bare']:.0f} | {speed['ours']:.0f} "
            f"| {shown} | {over[1]:+.1f}% ({over[0]:+.1f} to {over[2]:+.1f}) |",
            flush=True,
        )


def quartiles(ratios):
    return statistics.quantiles(ratios, n=4)


def ask(end):
    end.send(True)
    return end.recv()


def compare_objectives(options):
    """Print what a step of every objective costs, as a multiple of one of ``supervised``."""
    images, labels = make_images(options.batches)
    rows = torch.arange(len(images))
    splits = {"train": rows[BATCH:], "tune": rows[:BATCH]}
    dataset = from_arrays(torch.from_numpy(images), torch.from_numpy(labels), name="noise", splits=splits)
    train, tune = (partial(batches, dataset, split, batch_size=BATCH) for split in splits)
    parts = Parts(make_network=models.small_cnn, recipe=FOCAL_RECIPE, held_out=tune, n_samples=len(images))
    made = {key: entry.make(parts=parts) for key, entry in OBJECTIVES.items()}

    for objective in made.values():
        fit_seconds(objective, train, epochs=1)
    times = [
        {key: fit_seconds(objective, train, epochs=1) for key, objective in made.items()}
        for _ in range(options.repeats)
    ]
    print("\n| objective (small_cnn, parameters of the catalogue) | step, as a multiple of supervised |")
    print("|---|---|")
    for key in made:
        print(f"| {key} | {statistics.median(row[key] / row['supervised'] for row in times):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--objectives", action="store_true", help="what a step of each objective costs, too")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} thread(s), batches of {BATCH}\n")
    compare_loops(options)
    if options.objectives:
        compare_objectives(options)


if __name__ == "__main__":
    main()
