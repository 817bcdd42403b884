"""The example that answers medical questions, on a few questions of its own."""

import json
from pathlib import Path

import pytest
import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "medical_qa.py"
ILLNESSES = ("measles", "mumps", "asthma", "gout", "scurvy")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    import medical_qa

    monkeypatch.setattr(
        medical_qa,
        "SETTINGS",
        ("head.rnn=8", "head.compare=8", "training.epochs=2", "training.least_steps=1"),
    )
    monkeypatch.setattr(medical_qa, "FOUND", 4)
    return medical_qa


@pytest.fixture
def files(tmp_path):
    questions, answers = [], []
    for number, illness in enumerate(ILLNESSES):
        for kind, asked, told in (
            ("cause", f"What causes {illness} ?", f"The cause of {illness} is known.\tOr so it is said."),
            ("cure", f"How is {illness} treated ?", f"Rest is good against {illness}."),
        ):
            questions.append({"question": asked, "right": f"{kind}-{number}"})
            answers.append(f"{kind}-{number}\t{told}")
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)) + "\n")
    (tmp_path / "answers.tsv").write_text("\n".join(answers) + "\n")
    return tmp_path / "questions.jsonl", tmp_path / "answers.tsv"


def test_trained_and_asked(example, files, tmp_path, monkeypatch, capsys):
    questions, answers = files
    assert example.read_answers(answers)["cause-0"].endswith("Or so it is said.")
    out = tmp_path / "out"
    trained = example.train(
        example.read_questions(questions), example.read_answers(answers), out, "en", progress=False
    )
    assert len(trained.weights) == 3
    (found,) = example.MedicalAnswers.open(out).ask(["Is there a treatment for gout?"])
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert "cure-3" in [one.id for one in found]
    monkeypatch.setattr("sys.argv", ["medical_qa.py", "ask", str(out), "What causes gout?"])
    example.main()
    assert "cause-3" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["medical_qa.py"])
    with pytest.raises(SystemExit, match=r"python examples/medical_qa\.py train"):
        example.main()


def test_weights_prefer_what_tells_the_right_answer(example):
    names, noise = ["a", "b", "c"], torch.tensor([0.1, 0.4, 0.2])
    candidates = [(names, torch.stack([torch.eye(3)[row], noise], dim=1)) for row in (0, 1, 2, 0)]
    good, bad = example.fit_weights(candidates, ["a", "b", "c", "a"])
    assert good > 2
    assert abs(bad) < good
    with pytest.raises(SystemExit, match="no right answer"):
        example.fit_weights(candidates, ["x", "x", "x", "x"])


def test_a_title_is_read_and_long_texts_are_cut(example, tmp_path):
    rows = [{"title": "Gout", "question": "What now?", "right": "1"}, {"question": "Why?", "right": "2"}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [one.text for one in example.read_questions(tmp_path / "q.jsonl")] == ["Gout What now?", "Why?"]
    words = example.make_tokenizer(example.elmokit.default_spec("en"))
    assert example.first_words("word " * 100, words) == " ".join(["word"] * example.WORDS)
    assert example.first_words("", words) == ""
    assert example.log_odds(0.5) == 0
    assert example.log_odds(1.0) == pytest.approx(-example.log_odds(0.0))
