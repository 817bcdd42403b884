"""Ask questions of a small text, in English and in Chinese, and see which words matched.

    python examples/search.py ["a question"]     # in English; without one, some questions in both languages

search_en.txt and search_zh.txt have a document a line. The index is temporary; pass a folder to
`elmokit.Index.build` to keep one.
"""

import sys
from pathlib import Path

import elmokit

HERE = Path(__file__).parent
QUESTIONS = {
    "en": [
        "Why does dough rise?",
        "How do bees show the way to flowers?",
        "What does a bank do when prices rise?",
        "Who built the first printing press?",
        "How can heavy steel ships float?",
    ],
    "zh": ["物价上涨时银行怎么做？", "为什么铁船不会沉？", "蜜蜂怎样告诉同伴花在哪里？"],
}


def answer(index: elmokit.Index, question: str) -> None:
    """Print the best passage and the words of it that are nearest to those of the question."""
    for hit in index.search(question, 1, explain=True):
        matches = ", ".join(f"{one.word} → {one.found} {one.cosine:.2f}" for one in hit.matches)
        print(f"{question}\n    {hit.id}: {hit.text}\n    {matches}\n")


def main() -> None:
    """Build an index for each language and ask."""
    asked = {"en": sys.argv[1:]} if len(sys.argv) > 1 else QUESTIONS
    for language, questions in asked.items():
        documents = elmokit.read_documents([HERE / f"search_{language}.txt"])
        with elmokit.Index.build(documents, model=language) as index:
            for question in questions:
                answer(index, question)


if __name__ == "__main__":
    main()
