"""The encoder reads the text of a task before it is frozen."""

import pytest
import torch

import elmokit
from elmokit import ConfigError
from elmokit.tasks import compare, find_task, load_task, train
from elmokit.tasks.core.training import open_training
from tests.task_data import quick_settings


def test_the_encoder_is_adapted_and_saved_with_the_model(folders, elmo, tmp_path):
    out, cache, data = tmp_path / "out", tmp_path / "cache", folders["classifier"]
    settings = quick_settings("classifier")
    arguments = {"encoder": str(elmo), "settings": settings, "cache": cache, "adapt": True}
    found = train("classifier", data, out=out, **arguments)
    (adapted,) = cache.glob("adapted-*")
    sentence = "Grace Hopper left"
    one, other = (elmokit.load(model).embed(sentence).vectors for model in (adapted, elmo))
    assert abs(one - other).max() > 1e-3
    written = (adapted / "config.json").stat().st_mtime_ns
    again = train("classifier", data, out=tmp_path / "again", **arguments)  # takes the adapted one
    assert (adapted / "config.json").stat().st_mtime_ns == written
    for name, weight in found.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name])
    text, expected = "Grace Hopper left.", found.model.predict("Grace Hopper left.")
    for file in sorted(cache.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    assert load_task(out).predict(text).scores == pytest.approx(expected.scores, abs=1e-6)


def test_further_text_makes_another_encoder(folders, elmo, tmp_path):
    (tmp_path / "more.txt").write_text("Grace Hopper came back to New York.\n" * 20, encoding="utf-8")
    task = find_task("tagger")
    common = {"settings": quick_settings("tagger"), "adapt": 0.001}
    kept = []
    for files in ((), [tmp_path / "more.txt"]):
        opened = open_training(task, folders["tagger"], encoder=str(elmo), adapt_text=files, **common)
        said = []
        opened.adapted(tmp_path / "cache", "cpu", said.append)
        assert "perplexity of dev" in said[-1]
        kept.append({path.name for path in (tmp_path / "cache").glob("adapted-*")})
    assert len(kept[0]) == 1
    assert len(kept[1]) == 2


def test_what_cannot_be_adapted_is_refused(folders, elmo, tmp_path):
    common = {"out": tmp_path / "out", "settings": quick_settings("tagger")}
    with pytest.raises(ConfigError, match="none of the encoders chars is an ELMo"):
        train("tagger", folders["tagger"], encoder="chars", adapt=True, **common)
    with pytest.raises(ConfigError, match="adapt_text has no effect without adapt=True"):
        train("tagger", folders["tagger"], encoder=str(elmo), adapt_text=["a.txt"], **common)
    with pytest.raises(ConfigError, match="adapt must be a finite number above 0"):
        train("tagger", folders["tagger"], encoder=str(elmo), adapt=-1, **common)


def test_compare_adapts_too(folders, elmo, tmp_path):
    found = compare(
        "classifier",
        folders["classifier"],
        [str(elmo)],
        out=tmp_path / "out",
        seeds=2,
        settings=quick_settings("classifier"),
        adapt=True,
    )
    assert len(found[0].runs) == 2
