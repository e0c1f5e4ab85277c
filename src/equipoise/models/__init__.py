"""Networks in two parts, body (features) and head; one file per family."""

from equipoise.core import torch_required as _torch_required  # noqa: F401 - first, for its message
from equipoise.models.deeplab import deeplabv3_resnet34
from equipoise.models.densenet import densenet40, densenet121
from equipoise.models.heads import split_head
from equipoise.models.network import Network, count_parameters
from equipoise.models.published_weights import load_published
from equipoise.models.resnet import (
    resnet18,
    resnet34,
    resnet50,
    resnet50_imagenet,
    resnet50_tiny,
    resnet110_focal,
)
from equipoise.models.resnet_cifar import (
    cifar_resnet,
    resnet8,
    resnet20,
    resnet32,
    resnet44,
    resnet56,
    resnet110,
    resnet110_sd,
    wide_resnet,
)
from equipoise.models.small import mlp, small_cnn, small_fcn
from equipoise.models.swin_v2 import swinv2_t
from equipoise.models.text_cnn import RECEPTIVE_FIELD, global_pooling_cnn
from equipoise.models.vgg import vgg16_bn

__all__ = [
    "RECEPTIVE_FIELD",
    "Network",
    "cifar_resnet",
    "count_parameters",
    "deeplabv3_resnet34",
    "densenet40",
    "densenet121",
    "global_pooling_cnn",
    "load_published",
    "mlp",
    "resnet8",
    "resnet18",
    "resnet20",
    "resnet32",
    "resnet34",
    "resnet44",
    "resnet50",
    "resnet50_imagenet",
    "resnet50_tiny",
    "resnet56",
    "resnet110",
    "resnet110_focal",
    "resnet110_sd",
    "small_cnn",
    "small_fcn",
    "split_head",
    "swinv2_t",
    "vgg16_bn",
    "wide_resnet",
]
