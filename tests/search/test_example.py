"""examples/search.py finds the answers to its questions with the bundled models."""

import runpy
from pathlib import Path

import elmokit

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "search.py"))
ANSWERS = {"en": ["3", "1", "4", "9", "12"], "zh": ["4", "9", "1"]}


def test_questions_find_their_answers(capsys):
    for language, lines in ANSWERS.items():
        documents = elmokit.read_documents([EXAMPLE["HERE"] / f"search_{language}.txt"])
        with elmokit.Index.build(documents, model=language) as index:
            for question, line in zip(EXAMPLE["QUESTIONS"][language], lines, strict=True):
                EXAMPLE["answer"](index, question)
                assert f"search_{language}.txt:{line}: " in capsys.readouterr().out
