"""The report on several encoders: what it says follows from the runs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from elmokit.errors import ConfigError
from elmokit.tasks import compare_report
from elmokit.tasks.core.comparison import Compared, MeasuredRun
from elmokit.tasks.core.comparison_report import paired_differences, pareto, write_comparison_report

RUN = MeasuredRun(
    score=0.0, values={}, trained=10, encoder=0, training=1.0, use=1.0, memory=50.0, cpu=1.0, size=1.0
)


def encoder(name, right, *, count=400, seed=0, cpu=1.0, use=1.0):
    """An encoder that labels a share of the examples right; the seed says which."""
    hits = np.random.default_rng(seed).permutation(count) < right * count
    examples = [[[int(hit), 1, 1]] for hit in hits]
    run = replace(RUN, score=float(hits.mean()), examples=examples, cpu=cpu, use=use)
    return Compared(name, "accuracy", [run, run])


def test_a_large_difference_is_told_from_a_small_one():
    best, near, far = encoder("en", 0.90), encoder("words", 0.89, seed=1), encoder("chars", 0.6, seed=2)
    to_near, to_far = paired_differences([far, best, near])
    assert (to_near.better, to_near.worse, to_far.worse) == ("en", "words", "chars")
    assert to_near.p > 0.3
    assert to_near.low < 0 < to_near.high
    assert to_far.p < 0.001
    assert to_far.difference == pytest.approx(0.3)
    assert to_far.low < 0.3 < to_far.high


def test_pairs_are_sharper_than_two_intervals():
    """Systems that err on the same examples are told apart by a difference of a few points."""
    better, worse = encoder("a", 0.80), encoder("b", 0.77)
    (same,) = paired_differences([better, worse])
    (other,) = paired_differences([better, encoder("b", 0.77, seed=5)])
    assert same.p < 0.01 < other.p


def test_no_test_where_nothing_is_counted():
    plain = Compared("en", "pearson", [RUN])
    assert paired_differences([plain, replace(plain, encoder="chars")]) == []


def test_the_front_has_no_encoder_that_is_dearer_and_worse():
    found = [
        encoder("dear", 0.9, cpu=9),
        encoder("cheap", 0.5, cpu=1),
        encoder("bad", 0.4, cpu=5),
        encoder("middle", 0.7, cpu=3),
    ]
    assert [one.name for one in pareto(found, "cpu")] == ["cheap", "middle", "dear"]


def test_what_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    results = {
        share: [encoder("glove:v.txt", 0.7 * share, use=1.0), encoder("en", 0.9 * share, seed=1, use=20.0)]
        for share in (0.1, 1.0)
    }
    write_comparison_report(results, tmp_path / "report", title="Names")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "Best with all labels given here: **en**, 90.00 ± 0.00 (accuracy)." in text
    assert "| encoder | 10 % of the labels | 100 % of the labels |" in text
    assert "| glove:v.txt | 7.00 ± 0.00 | 70.00 ± 0.00 |" in text
    assert "| en | glove:v.txt | 20.00 |" in text
    data = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert data["front"]["use"] == ["glove:v.txt", "en"]
    assert [one["encoder"] for one in data["shares"]["0.1"]] == ["glove:v.txt", "en"]
    for picture in ("shares", "cpu", "use"):
        assert (tmp_path / "report" / f"{picture}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("shares", [[], [0.0], [0.1, 0.1], [2.0]])
def test_impossible_shares(shares, tmp_path):
    with pytest.raises(ConfigError, match="share"):
        compare_report("tagger", "data", ["chars"], out=tmp_path / "o", report=tmp_path / "r", shares=shares)
