"""Our losses in a loop that is not ours: a small network on 1,797 handwritten digits, in seconds.

    python examples/plain_loop.py

Every loss takes the place of ``nn.CrossEntropyLoss``. Adaptive losses need one more line.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

from equipoise.losses import AdaFocalLoss, Adaptive, DualFocalLoss, FocalLoss, LabelSmoothingLoss


def digits() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Training, held-out and test images with their labels; three labels in ten are replaced by random ones."""
    images, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    noisy = torch.where(torch.rand(len(labels)) < 0.3, torch.randint(0, 10, (len(labels),)), labels)
    parts = torch.randperm(len(labels)).split([900, 400, 497])
    return [(images[part].float() / 16, noisy[part]) for part in parts]


def train(loss: nn.Module, epochs: int = 30) -> tuple[float, float]:
    """Train one network with a loss; return its accuracy, and confidence minus accuracy."""
    torch.manual_seed(0)
    (images, labels), held_out, test = digits()
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            loss(network(images[batch]), labels[batch]).backward()
            optimizer.step()
        if isinstance(loss, Adaptive):
            with torch.no_grad():
                loss.update(network(held_out[0]), held_out[1])  # the one extra line
    with torch.no_grad():
        confidence, predicted = network(test[0]).softmax(-1).max(-1)
    accuracy = (predicted == test[1]).float().mean()
    return accuracy.item(), (confidence.mean() - accuracy).item()


if __name__ == "__main__":
    candidates = {
        "cross-entropy": nn.CrossEntropyLoss(),
        "label smoothing": LabelSmoothingLoss(),
        "focal": FocalLoss(gamma=3),
        "dual focal": DualFocalLoss(),
        "AdaFocal": AdaFocalLoss(),
    }
    print(f"{'loss':18}{'accuracy':>10}{'confidence - accuracy':>24}")
    for name, loss in candidates.items():
        print("{:18}{:10.3f}{:+24.3f}".format(name, *train(loss)))
