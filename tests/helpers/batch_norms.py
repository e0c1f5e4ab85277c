"""Layers whose batch norms do something, and what a batch norm does, written out."""

import torch
from torch import nn


def scrambled(layer):
    """Give the norms inside a layer weights and statistics at random; it stays as in use, in double precision."""
    torch.manual_seed(0)
    for part in layer.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias)
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 1.5)
    return layer.double().eval()


def normed(image, norm):
    shape = (1, -1, 1, 1)
    scaled = (image - norm.running_mean.view(shape)) / (norm.running_var.view(shape) + norm.eps).sqrt()
    return scaled * norm.weight.view(shape) + norm.bias.view(shape)
