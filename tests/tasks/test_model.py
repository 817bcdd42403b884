"""Heads on their own, and models as folders."""

import json
import shutil

import pytest
import torch

import elmokit
from elmokit.encoders import CharacterEncoder, ElmoEncoder
from elmokit.model import Packing
from elmokit.tasks import IntentModel, load_task, task_settings, train
from elmokit.tasks.classifier import ClassifierHead, LabelledText
from elmokit.tasks.classifier.head import TextPooling
from elmokit.tasks.core import Hidden, TextInput
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.tasks.intent import IntentTask
from elmokit.tasks.tagger import TaggedText, TaggerHead
from elmokit.tasks.tagger.head import legal_steps
from elmokit.text import TokenizerSpec
from tests.tiny import tiny_arrays, tiny_config, write_folder

VECTORS = torch.tensor([[1.0, 4.0], [3.0, 2.0], [-5.0, -6.0]])
LENGTHS = torch.tensor([2, 0, 1])


def hidden(vectors, lengths=LENGTHS):
    return Hidden(vectors, lengths, Packing.of(lengths))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("mean", [[2, 3], [0, 0], [-5, -6]]), ("max", [[3, 4], [0, 0], [-5, -6]])],
)
def test_pooling(kind, expected):
    assert TextPooling(kind, 2)(VECTORS, LENGTHS).tolist() == expected


def test_attention():
    pooling = TextPooling("attention", 2)
    found = pooling(VECTORS, LENGTHS)
    weights = pooling.attention(VECTORS[:2])[:, 0].softmax(0)
    torch.testing.assert_close(found[0], weights @ VECTORS[:2])
    torch.testing.assert_close(found[1:], torch.tensor([[0.0, 0.0], [-5.0, -6.0]]))


def test_an_rnn_does_not_look_into_other_sentences():
    rnn = TaskRNN(2, 1, size=3, layers=2, dropout=0.5).eval()
    extra = torch.arange(3.0)[:, None]
    together = rnn(VECTORS, extra, LENGTHS).vectors
    assert together.shape == (3, 7)
    torch.testing.assert_close(together[:2], rnn(VECTORS[:2], extra[:2], LENGTHS[:1]).vectors)
    torch.testing.assert_close(together[2:], rnn(VECTORS[2:], extra[2:], LENGTHS[2:]).vectors)
    plain = TaskRNN(2, 1, size=0, layers=1, dropout=0.5).eval()
    torch.testing.assert_close(plain(VECTORS, extra, LENGTHS).vectors, torch.cat([VECTORS, extra], dim=1))


def test_class_weights_weigh():
    """With weights w the loss is Σ w_y · loss / Σ w_y."""
    examples = [
        LabelledText(("a", "b"), ("x",)),
        LabelledText((), ("y",)),
        LabelledText(("c",), ("y",)),
    ]
    head = ClassifierHead(2, ["x", "y"], pooling="mean", multi_label=False, weights=torch.tensor([3.0, 1.0]))
    losses = -head._logits(hidden(VECTORS)).log_softmax(dim=1)
    expected = (3 * losses[0, 0] + losses[1, 1] + losses[2, 1]) / 5
    torch.testing.assert_close(head.loss(hidden(VECTORS), examples), expected)


@pytest.mark.parametrize("crf", [True, False])
def test_a_tagger_of_spans(crf):
    tags = ["O", "B-X", "E-X", "S-X"]
    head = TaggerHead(2, tags, "BIOES", crf=crf)
    assert legal_steps(tags, "BIOES").tolist() == [
        [True, True, False, True, True],
        [False, False, True, False, False],
        [True, True, False, True, True],
        [True, True, False, True, True],
        [True, True, False, True, True],
    ]
    with torch.no_grad():
        head.linear.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0]))
        head.linear.weight.zero_()
    first, empty, last = head.decode(hidden(VECTORS), [])
    assert empty.tags == []
    if crf:  # B alone is not legal
        assert first.tags == ["B-X", "E-X"]
        assert last.tags in (["O"], ["S-X"])
    else:
        assert first.tags == ["B-X", "B-X"]
        assert first.spans[0][1] == pytest.approx(first.probabilities[0])
    examples = [TaggedText(("a", "b"), ("B-X", "E-X")), TaggedText((), ()), TaggedText(("c",), ("O",))]
    assert head.loss(hidden(VECTORS), examples).item() > 0


def make_model(encoders):
    settings = task_settings("intent", ["head.rnn=4"])
    task = IntentTask(settings, tags=("O", "B-X", "E-X"), labels=("é", "b"), scheme="BIO")
    return IntentModel(task, encoders, tokenizer=TokenizerSpec(name="whitespace")).eval()


def decoded(model, *texts):
    return model.decode([TextInput.read(text, str.split) for text in texts])


def same_outputs(one, other):
    texts = [["a", "bank"], ["the"]]
    for old, new in zip(decoded(one, *texts), decoded(other, *texts), strict=True):
        assert old.slots.tags == new.slots.tags
        scores = list(new.intent.scores.values())
        assert list(old.intent.scores.values()) == pytest.approx(scores, abs=1e-6)


def test_saved_and_loaded(elmo, tmp_path):
    model = make_model([CharacterEncoder(), ElmoEncoder.open(elmo)])
    model.save(tmp_path / "model")
    loaded = load_task(tmp_path / "model")
    assert (loaded.task, loaded.tokenizer) == (model.task, model.tokenizer)
    same_outputs(model, loaded)
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"config.json", "model.safetensors"}


def test_stored_in_int8(elmo, tmp_path):
    model = make_model([CharacterEncoder(), ElmoEncoder.open(elmo)])
    for dtype in ("float32", "int8"):
        model.save(tmp_path / dtype, dtype=dtype)
    whole, small = ((tmp_path / dtype / "model.safetensors").stat().st_size for dtype in ("float32", "int8"))
    assert small < whole  # most of this tiny model are vectors of characters, which stay float32
    loaded = load_task(tmp_path / "int8")
    for name, weight in loaded.state_dict().items():
        own = model.state_dict()[name]
        step = own.abs().amax(dim=-1, keepdim=True) / 127 if own.dim() > 1 else 0.0
        assert (weight - own).abs().le(step * 0.51 + 1e-7).all(), name
    again = tmp_path / "again"
    loaded.save(again)
    same_outputs(loaded, load_task(again))
    with pytest.raises(elmokit.ConfigError, match=r"dtype.*int4"):
        model.save(tmp_path / "int4", dtype="int4")


def test_elmo_in_another_precision(elmo, tmp_path):
    model = make_model([CharacterEncoder(), ElmoEncoder.open(elmo)])
    model.save(tmp_path / "model")
    fast = load_task(tmp_path / "model", precision="auto")
    (one,), (other,) = decoded(model, ["a", "bank"]), decoded(fast, ["a", "bank"])
    scores = list(other.intent.scores.values())
    assert list(one.intent.scores.values()) == pytest.approx(scores, abs=0.05)
    assert fast.encoders[1].fingerprint() == model.encoders[1].fingerprint()
    with pytest.raises(elmokit.ConfigError, match="precision"):
        load_task(tmp_path / "model", precision="float7")


def test_self_contained(elmo, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(elmo, source)
    (tmp_path / "v.txt").write_text("the 1 2\n")
    model = make_model(
        [CharacterEncoder(), *elmokit.encoders.open_encoders(f"glove:{tmp_path / 'v.txt'}+{source}")]
    )
    model.save(tmp_path / "model", self_contained=True)
    shutil.rmtree(source)
    (tmp_path / "v.txt").unlink()
    shutil.move(tmp_path / "model", tmp_path / "moved")
    same_outputs(model, load_task(tmp_path / "moved"))


def test_the_encoder_has_changed_since(tmp_path):
    folder = write_folder(tmp_path / "elmo")
    make_model([ElmoEncoder.open(str(folder))]).save(tmp_path / "model")
    write_folder(tmp_path / "elmo", arrays=tiny_arrays(tiny_config(), seed=5))
    with pytest.raises(elmokit.ModelFileError, match=r"has changed since .* was trained .* or train again"):
        load_task(tmp_path / "model")


def test_folders_that_hold_no_model(tmp_path):
    with pytest.raises(elmokit.ModelFileError, match="holds no task model; pass a folder that"):
        load_task(tmp_path)
    with pytest.raises(elmokit.ModelFileError, match=r"nowhere does not exist; pass a folder that training"):
        load_task(tmp_path / "nowhere")
    with pytest.raises(
        elmokit.ModelFileError, match=r"^en is an ELMo model, not a task model; pass a folder that"
    ):
        load_task("en")
    (tmp_path / "config.json").write_text(json.dumps({"format": "elmokit-task", "format_version": 99}))
    with pytest.raises(elmokit.ModelFileError, match="holds no elmokit-task model of version 2 or 1"):
        load_task(tmp_path)


def test_damaged_weights(tmp_path):
    make_model([CharacterEncoder()]).save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(elmokit.ModelFileError, match="cannot be read as safetensors"):
        load_task(tmp_path)


def test_a_tuned_encoder_is_saved_with_the_model(folders, elmo, quick, tmp_path):
    settings = quick.changed(["encoder.tune_from=0", "encoder.learning_rate=0.01", "training.epochs=2"])
    found = train("tagger", folders["tagger"], encoder=elmo, out=tmp_path / "out", settings=settings)
    loaded = load_task(tmp_path / "out")
    assert (tmp_path / "out" / "encoder-0" / "model.safetensors").exists()
    tuned, original = loaded.encoders[0].fingerprint(), ElmoEncoder.open(elmo).fingerprint()
    assert tuned != original
    text = ["Ada", "saw", "Rome", "."]
    (old,), (new,) = decoded(found.model, text), decoded(loaded, text)
    assert old.tags == new.tags
    assert old.probabilities == pytest.approx(new.probabilities, abs=1e-5)
