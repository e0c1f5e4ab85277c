"""A checkpoint that a network starts from: named in the spec, found in the data folder, known by its content."""

import pytest
import torch

from equipoise.core.errors import DataError, SpecError
from equipoise.experiments import Execution, Spec, prepare
from equipoise.experiments.build.preparation import pin
from equipoise.experiments.build.run_parts import build
from equipoise.models import mlp, small_cnn

TABLE = {"data": "digits", "model": {"name": "mlp", "options": {"hidden": [8]}, "weights": "start.pt"}}


def torchvision_resnet34():
    """Return weights under the names and in the shapes of torchvision's ResNet-34."""
    random = torch.Generator().manual_seed(0)

    def norm(name, width):
        numbers = {
            key: torch.rand(width, generator=random)
            for key in ("weight", "bias", "running_mean", "running_var")
        }
        return {f"{name}.{key}": value for key, value in numbers.items()}

    def conv(name, n_out, n_in, side):
        return {f"{name}.weight": torch.randn(n_out, n_in, side, side, generator=random)}

    found = {**conv("conv1", 64, 3, 7), **norm("bn1", 64)}
    n_in = 64
    for stage, (width, depth) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], start=1):
        for block in range(depth):
            name = f"layer{stage}.{block}"
            found |= {**conv(f"{name}.conv1", width, n_in, 3), **norm(f"{name}.bn1", width)}
            found |= {**conv(f"{name}.conv2", width, width, 3), **norm(f"{name}.bn2", width)}
            if n_in != width:
                found |= conv(f"{name}.downsample.0", width, n_in, 1) | norm(f"{name}.downsample.1", width)
            n_in = width
    return {**found, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}


@pytest.fixture
def root(tmp_path):
    torch.manual_seed(7)
    torch.save(mlp(10, 64, hidden=(8,)).state_dict(), tmp_path / "start.pt")
    return str(tmp_path)


def first_layer(network):
    return next(iter(network.state_dict().values()))


def test_a_network_starts_from_the_checkpoint_whatever_the_seed(root, tmp_path):
    wanted = next(iter(torch.load(tmp_path / "start.pt").values()))
    for seed in (0, 1):
        built = build(Spec.from_table({**TABLE, "seed": seed}), execution=Execution(root=root))
        assert torch.equal(first_layer(built.objective.network()), wanted)


def test_its_content_is_part_of_the_identity_and_its_place_is_not(root, tmp_path):
    plain = Spec.from_table({**TABLE, "model": {"name": "mlp", "options": {"hidden": [8]}}})
    one = pin(Spec.from_table(TABLE), execution=Execution(root=root))
    (tmp_path / "start.pt").rename(tmp_path / "moved.pt")
    moved = {**TABLE, "model": {**TABLE["model"], "weights": str(tmp_path / "moved.pt")}}
    assert pin(Spec.from_table(moved)).identity == one.identity != plain.identity
    torch.save(mlp(10, 64, hidden=(8,)).state_dict(), tmp_path / "start.pt")
    assert pin(Spec.from_table(TABLE), execution=Execution(root=root)).identity != one.identity
    assert Spec.from_table(one.to_table()).identity == one.identity


def test_networks_without_a_checkpoint_keep_their_identity():
    assert "weights" not in Spec.from_table({"data": "digits", "model": "mlp"}).to_table()["model"]
    helper = {"name": "differentiated_mutual_learning", "auxiliary": "mlp"}
    table = Spec.from_table({"data": "digits", "model": "mlp", "method": helper}).to_table()
    assert table["method"]["auxiliary"] == {"name": "mlp"}


def test_an_encoder_is_filled_from_torchvisions_resnet34(tmp_path):
    published = torchvision_resnet34()
    torch.save(published, tmp_path / "resnet34-imagenet.pth")
    table = {
        "data": {"name": "voc2012", "options": {"stand_in": 32}},
        "model": {
            "name": "deeplabv3_resnet34",
            "weights": "resnet34-imagenet.pth",
            "weights_into": "body.encoder",
        },
        "recipe": {"batch_size": 2},
    }
    encoder = (
        build(Spec.from_table(table), execution=Execution(root=str(tmp_path)))
        .objective.network()
        .body.encoder
    )
    state = {name.replace("shortcut", "downsample"): value for name, value in encoder.state_dict().items()}
    assert torch.equal(state["layer4.0.downsample.0.weight"], published["layer4.0.downsample.0.weight"])
    wanted = {name for name in published if not name.startswith("fc.")}
    assert wanted == {name for name in state if not name.endswith("num_batches_tracked")}
    assert all(torch.equal(state[name], published[name]) for name in wanted)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"weights": "nowhere.pt"}, DataError, r"mine\.toml\.model: weights: no file .*nowhere\.pt"),
        ({"weights_into": "bdy"}, SpecError, r"mine\.toml\.model: .*did you mean 'body'"),
        ({"options": {"hidden": [16]}}, DataError, r"mine\.toml\.model: .*weights of this network's shapes"),
    ],
)
def test_mistakes_are_reported_before_the_first_run(root, change, error, sentence):
    table = {**TABLE, "model": {**TABLE["model"], **change}}
    with pytest.raises(error, match=sentence):
        prepare([Spec.from_table(table)], where="mine.toml", execution=Execution(root=root))


def test_the_weights_of_another_network_are_an_error(tmp_path):
    torch.save(small_cnn(10).state_dict(), tmp_path / "start.pt")
    with pytest.raises(DataError, match="must hold the weights of this network"):
        prepare([Spec.from_table(TABLE)], execution=Execution(root=str(tmp_path)))
