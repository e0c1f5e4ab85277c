"""Your own network: any torch module. Arguments n_classes, in_channels and n_inputs are passed by name."""

from torch import Tensor, nn


class Net(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, n_classes: int, in_channels: int, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * width, n_classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.layers(images)
        return logits
