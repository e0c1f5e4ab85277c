"""Models of the transformers package: split at their heads, and the same window attention."""

import pytest
import torch

from equipoise.models import split_head, swinv2_t

transformers = pytest.importorskip("transformers")
pytestmark = [pytest.mark.reference, pytest.mark.filterwarnings("ignore")]

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_labels": 5,
}


def words():
    return {"input_ids": torch.randint(3, 50, (3, 9)), "attention_mask": torch.ones(3, 9, dtype=torch.long)}


def make_bert():
    config = transformers.BertConfig(vocab_size=50, **TINY)
    return transformers.BertForSequenceClassification(config), "classifier", words()


def make_gpt2():
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, num_labels=5, **special)
    return transformers.GPT2ForSequenceClassification(config), "score", words()


def make_vit():
    config = transformers.ViTConfig(image_size=32, patch_size=8, **TINY)
    return transformers.ViTForImageClassification(config), "classifier", torch.randn(2, 3, 32, 32)


def make_resnet():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], num_labels=5
    )
    return transformers.ResNetForImageClassification(config), "classifier.1", torch.randn(2, 3, 64, 64)


@pytest.mark.parametrize("make", [make_bert, make_gpt2, make_vit, make_resnet])
def test_split(make):
    torch.manual_seed(0)
    model, name, inputs = make()
    network = split_head(model, name, example=inputs).eval()
    model.eval()
    wanted = (model(**inputs) if isinstance(inputs, dict) else model(inputs)).logits
    features = network.features(inputs)
    assert features.shape == (len(wanted), network.n_features)
    assert torch.equal(network.head(features), wanted)
    assert {id(value) for value in network.parameters()} == {id(value) for value in model.parameters()}


def their_names():
    """Our names of layers in a block, and theirs."""
    same = {"attn.logit_scale": "attention.self.logit_scale", "attn.q_bias": "attention.self.query.bias"}
    same |= {"attn.v_bias": "attention.self.value.bias"}
    layers = {"attn.proj": "attention.output.dense", "norm1": "layernorm_before", "norm2": "layernorm_after"}
    layers |= {"mlp.0": "intermediate.dense", "mlp.2": "output.dense"}
    layers |= {"attn.cpb_mlp.0": "attention.self.continuous_position_bias_mlp.0"}
    same |= {
        f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in layers.items() for kind in ("weight", "bias")
    }
    return same | {"attn.cpb_mlp.2.weight": "attention.self.continuous_position_bias_mlp.2.weight"}


def translate(theirs):
    """Their weights of SwinV2-T under our names."""
    base = "swinv2.embeddings."
    ours = {"head.weight": theirs["classifier.weight"], "head.bias": theirs["classifier.bias"]}
    for kind in ("weight", "bias"):
        ours[f"body.patch_embed.{kind}"] = theirs[f"{base}patch_embeddings.projection.{kind}"]
        ours[f"body.patch_norm.{kind}"] = theirs[f"{base}norm.{kind}"]
        ours[f"body.norm.{kind}"] = theirs[f"swinv2.layernorm.{kind}"]
    number = 0
    for stage, depth in enumerate((2, 2, 6, 2)):
        for place in range(depth):
            block = f"swinv2.encoder.layers.{stage}.blocks.{place}."
            ours |= {
                f"body.layers.{number}.{key}": theirs[block + other] for key, other in their_names().items()
            }
            parts = [theirs[f"{block}attention.self.{part}.weight"] for part in ("query", "key", "value")]
            ours[f"body.layers.{number}.attn.qkv.weight"] = torch.cat(parts)
            number += 1
        if stage < 3:
            for key in ("reduction.weight", "norm.weight", "norm.bias"):
                ours[f"body.layers.{number}.{key}"] = theirs[
                    f"swinv2.encoder.layers.{stage}.downsample.{key}"
                ]
            number += 1
    return ours


def test_swinv2_t_gives_the_same_logits():
    config = transformers.Swinv2Config(image_size=128, window_size=8, num_labels=5)
    theirs = transformers.Swinv2ForImageClassification(config).eval()
    torch.manual_seed(0)
    for name, value in theirs.named_parameters():
        if "norm" in name:
            torch.nn.init.uniform_(value, 0.2, 1.0)
        elif value.dim() == 1 or "position_bias" in name:
            torch.nn.init.normal_(value, std=0.2)
    ours = swinv2_t(n_classes=5).eval()
    ours.load_state_dict(translate(theirs.state_dict()))
    images = torch.randn(2, 3, 128, 128)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images).logits, rtol=1e-3, atol=1e-4)
