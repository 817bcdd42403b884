"""All uses of a word: found, grouped, drawn."""

import logging
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from elmokit import ConfigError, DataError, TextColumn, find_uses
from elmokit.base import check_picture
from elmokit.cli import main
from elmokit.embed import Embedder
from elmokit.search.clusters import _distances, cluster
from tests.tiny import tiny_bundle

LINES = ["the river bank", "", "Bank or bank", "banks of the river", "no such word"]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny_bundle())


def test_every_use_with_its_place_and_vectors(embedder):
    found = find_uses(embedder, LINES, "bank")
    assert [(use.line, use.word, use.start, use.end) for use in found.uses] == [
        (1, "bank", 10, 14),
        (3, "Bank", 0, 4),
        (3, "bank", 8, 12),
    ]
    np.testing.assert_allclose(found.layers[:, 0], embedder.embed(LINES[0]).layers[:, 2], atol=1e-6)
    assert [use.line for use in find_uses(embedder, LINES, "bank", match_case=True).uses] == [1, 3]
    assert find_uses(embedder, LINES, "the river").uses[1].text == LINES[3]


def test_groups_are_of_meanings_not_of_spellings(embedder):
    """Each use is read as the word that was asked for; what is shown is as it was written."""
    lines = ["The Bank of England", "the bank of England", ["a", "BANK", "'s", "rates"]]
    found = find_uses(embedder, lines, "bank")
    assert [use.word for use in found.uses] == ["Bank", "bank", "BANK"]
    assert [use.text for use in found.uses] == [*lines[:2], "a BANK 's rates"]
    np.testing.assert_allclose(found.layers[0], np.stack([found.layers[0, 0]] * 3), atol=1e-6)
    given = embedder.embed("The bank of England").layers[:, 1]
    np.testing.assert_allclose(found.layers[:, 0], given, atol=1e-6)
    exact = find_uses(embedder, lines, "Bank", match_case=True)
    np.testing.assert_allclose(exact.layers[:, 0], embedder.embed(lines[0]).layers[:, 1], atol=1e-6)


def test_senses_of_a_column(embedder, tmp_path):
    table = tmp_path / "uses.csv"
    table.write_text('id;sentence;meaning\n1;"my bank; yours";money\n2;the bank;river\n3;bank;money\n')
    found = find_uses(embedder, TextColumn(table, "Sentence"), "bank", sense_column="meaning")
    assert [use.sense for use in found.uses] == ["river", "money"]  # "bank;" is another token
    assert found.senses == ["river", "money"]
    with pytest.raises(DataError, match=r"sense_column='sense' is not one of its columns.*'id', 'sentence'"):
        find_uses(embedder, TextColumn(table, "sentence"), "bank", sense_column="sense")
    with pytest.raises(DataError, match="text_column='text' is not one of its columns"):
        find_uses(embedder, table, "bank", sense_column="meaning")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_senses": 2, "sense_column": "x"}, "choose one of them"),
        ({"sense_column": "x"}, "needs a table"),
        ({"most": 0}, "most"),
    ],
)
def test_settings_that_cannot_be(embedder, settings, message):
    with pytest.raises(ConfigError, match=message):
        find_uses(embedder, LINES, "bank", **settings)


def test_nothing_found_and_too_many(embedder):
    with pytest.raises(DataError, match="the text has no word 'play'"):
        find_uses(embedder, LINES, "play")
    found = find_uses(embedder, LINES, "bank", most=2)
    assert (len(found), found.left_out) == (2, 1)


def test_groups_that_are_there_are_found():
    random = np.random.default_rng(0)
    centres = random.normal(size=(3, 20))
    sizes = (40, 20, 10)
    points = np.concatenate(
        [random.normal(centre, 0.2, (n, 20)) for centre, n in zip(centres, sizes, strict=True)]
    )
    expected = np.repeat([0, 1, 2], sizes)
    order = random.permutation(len(points))
    np.testing.assert_array_equal(cluster(points[order].astype(np.float32)), expected[order])
    assert cluster(random.normal(size=(50, 20)).astype(np.float32)).max() == 0  # no groups
    assert cluster(np.ones((5, 4), np.float32), 3).tolist() == [0] * 5


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_a_picture_with_chinese(tmp_path, caplog, ending):
    """The font that comes with elmokit has the characters, so no box is drawn and nothing is warned about."""
    embedder = Embedder(tiny_bundle(tokenizer="characters"))
    found = find_uses(embedder, ["银行提高了利率。", "他在银行工作。", "bank 银行"], "银行", num_senses=2)
    with caplog.at_level(logging.WARNING):
        found.draw(tmp_path / f"uses{ending}")
    assert caplog.records == []
    assert (tmp_path / f"uses{ending}").stat().st_size > 10_000


def test_one_use_can_be_drawn(embedder, tmp_path):
    find_uses(embedder, ["a bank"], "bank").draw(tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()


def test_a_picture_of_one_use_has_no_missing_number(embedder, tmp_path):
    found = find_uses(embedder, ["a bank"], "bank")
    found.draw(tmp_path / "one.svg")
    assert "nan" not in (tmp_path / "one.svg").read_text().lower()


def test_distances_are_those_of_the_points():
    points = np.random.default_rng(1).normal(size=(40, 7)).astype(np.float32)
    expected = np.linalg.norm(points[:, None] - points, axis=-1)
    np.testing.assert_allclose(_distances(points), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "message"),
    [("uses.bmpx", "has to end in .png"), ("no/uses.png", "no does not exist"), (".", "has to end in .png")],
)
def test_a_picture_that_cannot_be_is_refused_before_the_work(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["uses", "bank", "-t", "the bank", "--picture", name])
    assert (done.exit_code, done.stdout) == (1, "")
    assert message in done.stderr
    with pytest.raises(ConfigError, match=message):
        check_picture(Path(name))
