"""Images per second: whole batches augmented in memory, against a DataLoader with per-image transforms.

    python benchmarks/data.py [--root FOLDER]

Both crop with four pixels of padding, flip, scale and normalize. Runs alternate; ratios are medians over
rounds. With a data folder the images are CIFAR-10's, and the padding saved on 20 Newsgroups is counted;
without one the images are random bytes of the same shape.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from equipoise.core.errors import DataError
from equipoise.data import Augment, Batch, batches, from_arrays, load

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


class OneByOne(TorchDataset):
    """Per-image transforms, in tensors or in Pillow, as training scripts write them."""

    def __init__(self, data, form):
        self.rows = data.rows("train")
        self.planes = data.inputs.contiguous()
        self.pixels = self.planes.permute(0, 2, 3, 1).contiguous().numpy()
        self.labels = data.labels.tolist()
        self.transform = {"tensor": self.in_tensors, "pillow": self.in_pillow}[form]
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        row = int(self.rows[place])
        return self.transform(row), self.labels[row]

    def normalized(self, image):
        return image.float().div_(255).sub_(self.mean).div_(self.std)

    def in_tensors(self, row):
        padded = torch.nn.functional.pad(self.planes[row], (4, 4, 4, 4))
        top, left, flip = torch.randint(9, (3,)).tolist()
        image = padded[:, top : top + 32, left : left + 32]
        return self.normalized(image.flip(-1) if flip > 4 else image)

    def in_pillow(self, row):
        from PIL import Image, ImageOps

        top, left, flip = torch.randint(9, (3,)).tolist()
        image = ImageOps.expand(Image.fromarray(self.pixels[row]), border=4)
        image = image.crop((left, top, left + 32, top + 32))
        image = ImageOps.mirror(image) if flip > 4 else image
        return self.normalized(torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous())


def images_of(batch):
    return batch.inputs if isinstance(batch, Batch) else batch[0]


def rate(make, seconds):
    """Images per second of the clock, and of this process's processor time.

    All run equally long, so that a busy machine interrupts them alike; epochs follow each other.
    """
    start, busy = time.perf_counter(), time.process_time()
    seen, spent = 0, 0.0
    while spent < seconds:
        for batch in make():
            seen += len(images_of(batch))
            spent = time.perf_counter() - start
            if spent >= seconds:
                break
    return seen / spent, seen / (time.process_time() - busy)


def check(make, batch_size):
    """Both sides must hand over the same thing: full batches of normalized float images."""
    images = images_of(next(iter(make())))
    assert tuple(images.shape) == (batch_size, 3, 32, 32), images.shape
    assert images.dtype == torch.float32


def pipelines(data, batch_size):
    """Each gives an iterable; workers are started before the clock by taking a first batch."""
    augment = Augment(crop_padding=4, flip=True)
    yield "in memory, whole batches", lambda: batches(data, "train", batch_size=batch_size, augment=augment)
    for form in ("tensor", "pillow"):
        for workers in (0, 2):
            loader = DataLoader(
                OneByOne(data, form),
                batch_size=batch_size,
                shuffle=True,
                num_workers=workers,
                persistent_workers=workers > 0,
            )
            yield f"DataLoader, {form}, {workers} workers", lambda loader=loader: loader


def compare(data, *, batch_size, seconds, rounds):
    table = dict(pipelines(data, batch_size))
    for make in table.values():
        check(make, batch_size)
    rates = {name: [] for name in table}
    for _ in range(rounds):
        for name, make in table.items():
            rates[name].append(rate(make, seconds))
    ours = next(iter(table))
    print(f"\n{data.name}, batches of {batch_size}, median of {rounds} rounds, one thread per process")
    print(f"{'pipeline':34} {'images/s':>10} {'ours / it':>10} {'ours / it, per cpu-s':>22}")
    clock = {}
    for name, values in rates.items():
        pairs = list(zip(rates[ours], values, strict=True))
        clock[name] = statistics.median(a[0] / b[0] for a, b in pairs)
        # The time of worker processes is not in that of this one, so there is no honest number for them.
        busy = f"{statistics.median(a[1] / b[1] for a, b in pairs):21.1f}x" if "2 workers" not in name else ""
        print(f"{name:34} {statistics.median(v[0] for v in values):10,.0f} {clock[name]:9.1f}x {busy:>22}")
    worst = min(ratio for name, ratio in clock.items() if name != ours)
    print(
        f"against the fastest DataLoader: {worst:.1f}x ({'reached' if worst >= 4 else 'MISSED'}: at least 4x)"
    )


def count_padding(root):
    data = load("newsgroups", root=root, options={"embedding": "none"})
    start = time.perf_counter()
    shapes = [batch.inputs.shape for batch in batches(data, "train", batch_size=128)]
    seconds = time.perf_counter() - start
    documents, tokens = sum(n for n, _ in shapes), sum(n * length for n, length in shapes)
    each = tokens / documents
    print(f"\n20 Newsgroups: {documents} documents, {each:.0f} tokens each after trimming in buckets")
    print(f"instead of 1,000 ({1000 / each:.1f}x fewer); {documents / seconds:,.0f} documents/s")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", help="data folder with CIFAR-10 and 20 Newsgroups")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each timing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    pixels = torch.randint(0, 256, (20_000, 3, 32, 32), dtype=torch.uint8)
    data = from_arrays(pixels, torch.arange(20_000) % 10, name="random bytes", mean=MEAN, std=STD)
    if args.root:
        try:
            data = load("cifar10", root=args.root)
        except DataError as error:
            print(error)
    for batch_size in (128, 512):
        compare(data, batch_size=batch_size, seconds=args.seconds, rounds=args.rounds)
    if args.root:
        try:
            count_padding(args.root)
        except DataError as error:
            print(error)


if __name__ == "__main__":
    main()
