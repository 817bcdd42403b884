"""The example of customer service: its texts are whole, and its conversation runs without a terminal."""

import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parents[2] / "examples" / "customer_service"
EXAMPLE = runpy.run_path(str(HERE / "customer_service.py"))


@pytest.fixture(params=["en", "zh"])
def words(request):
    return tomllib.loads((HERE / f"{request.param}.toml").read_text(encoding="utf-8"))


def test_the_texts_fit_each_other(words):
    slots = set(words["slots"])
    assert set(words["ask"]) == slots
    for intent in words["intents"]:
        named = set(re.findall(r"\{(\w+)\}", " ".join([intent["reply"], *intent["say"]])))
        assert named <= slots
        assert set(intent.get("needs", ())) <= named
    rows = list(EXAMPLE["training_rows"](words))
    assert all(value in row["text"] for row in rows for value in row["slots"].values())
    assert {row["intent"] for row in rows} == {one["name"] for one in words["intents"]} | {
        "question",
        "particulars",
    }


def understood(label, slots, probability=0.99):
    spans = [SimpleNamespace(label=name, text=text) for name, text in slots.items()]
    return SimpleNamespace(label=label, spans=spans, scores={label: probability})


def shop_that_understands(words, *answers):
    told = iter(answers)
    intents = SimpleNamespace(predict=lambda _: next(told))
    index = SimpleNamespace(search=lambda *_: [])
    return EXAMPLE["Shop"](words, intents, index)


def test_slots_are_asked_for(words):
    shop = shop_that_understands(
        words, understood("cancel_order", {}), understood("particulars", {"order": "12345678"}, 0.3)
    )
    assert shop.reply("") == words["ask"]["order"]
    assert "12345678" in shop.reply("")
    assert shop.wanted is None


def test_what_is_not_known_is_said(words):
    shop = shop_that_understands(
        words,
        understood("cancel_order", {}),
        understood("question", {}),
        understood("in_stock", {"product": "Peru"}),
        understood("greeting", {}, 0.5),
    )
    assert shop.reply("") == words["ask"]["order"]
    assert shop.reply("") == words["unknown"]  # the customer has gone on to something else
    assert shop.reply("") == words["foreign"]["product"].format(product="Peru")
    assert shop.reply("") == words["unknown"]


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_a_conversation_ends(words, end, monkeypatch, capsys):
    lines = iter(["hello", "", end])

    def read(_):
        line = next(lines)
        if line is end:
            raise end
        return line

    monkeypatch.setattr("builtins.input", read)
    EXAMPLE["talk"](shop_that_understands(words, understood("greeting", {})))
    said = capsys.readouterr().out.split("\n")
    assert said == [
        next(one["reply"] for one in words["intents"] if one["name"] == "greeting"),
        words["goodbye"],
        "",
    ]


def test_the_demonstration(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["customer_service.py", "en", "--demo", "--keep", str(tmp_path)])
    EXAMPLE["main"]()
    said = capsys.readouterr().out
    assert "> how much is shipping?\nShipping costs 4 euros" in said
    assert "48213377 has left our store" in said
    assert (tmp_path / "intents" / "config.json").is_file()
