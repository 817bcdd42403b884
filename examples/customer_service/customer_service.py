"""Customer service as a small conversation: what does a customer want, and what to reply?

    python examples/customer_service/customer_service.py [en|zh]           # talk; Ctrl-D or Ctrl-C ends it
    python examples/customer_service/customer_service.py zh --demo         # a conversation as an example
    python examples/customer_service/customer_service.py --keep FOLDER     # train once, use again

A model of intents and slots is trained on the phrases of en.toml or zh.toml, and an index is built of their
questions and answers. A request gets its reply when its slots are known, and is asked for them before. Any
other question gets the answer to the nearest known question, if that is near; else the honest reply is that
nobody here knows.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import elmokit
from elmokit.search import Document

HERE = Path(__file__).parent
VARIANTS = 6  # of each phrase with slots, with other values
SURE = 0.8  # the probability from which on an intent is believed
SETTINGS = ("head.rnn=50", "encoder.place=input", "training.epochs=12", "training.least_steps=1")


def training_rows(words: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the phrases with values in their slots, and the questions as an intent of their own."""
    chooser = random.Random(1)
    for intent in words["intents"]:
        for phrase in intent["say"]:
            names = re.findall(r"\{(\w+)\}", phrase)
            for _ in range(VARIANTS if names else 2):
                slots = {name: chooser.choice(words["slots"][name]) for name in names}
                yield {"text": phrase.format(**slots), "intent": intent["name"], "slots": slots}
    for answered in words["faq"]:
        yield from ({"text": phrase, "intent": "question", "slots": {}} for phrase in answered["say"] * 2)
    for name, values in words["slots"].items():  # the bare answer to "Which …?"
        yield from ({"text": value, "intent": "particulars", "slots": {name: value}} for value in values)


class Shop:
    """One conversation.

    Args:
        words: what is in the TOML file.
        intents: the trained model.
        index: of the known questions.
    """

    def __init__(self, words: dict[str, Any], intents: elmokit.IntentModel, index: elmokit.Index) -> None:
        self.words, self.intents, self.index = words, intents, index
        self.wanted: dict[str, Any] | None = None  # the intent whose slots are being asked for
        self.slots: dict[str, str] = {}

    def reply(self, text: str) -> str:
        """Return the reply to what a customer says."""
        found = self.intents.predict(text)
        slots = {span.label: span.text for span in found.spans}
        intents = {intent["name"]: intent for intent in self.words["intents"]}
        if self.wanted is not None and set(slots) & set(self.wanted["needs"]):
            self.slots |= slots  # whatever the words around them
            return self._answer()
        self.wanted, self.slots = None, {}
        if found.label in intents and found.scores[found.label] >= SURE:
            self.wanted, self.slots = intents[found.label], slots
            return self._answer()
        return self._look_up(text)

    def _answer(self) -> str:
        """Return the reply to the request, or ask for a slot that is not known."""
        assert self.wanted is not None
        for name in self.wanted.get("needs", ()):
            if name not in self.slots:
                return str(self.words["ask"][name])
        # A shop must not promise what it does not sell, whatever the model takes for a product.
        foreign = [reply for name, reply in self.words["foreign"].items() if not self._sells(name)]
        said = (foreign[0] if foreign else self.wanted["reply"]).format(**self.slots)
        self.wanted, self.slots = None, {}
        return str(said)

    def _sells(self, name: str) -> bool:
        value = self.slots.get(name, "").lower()
        return any(known in value or value in known for known in self.words["slots"][name])

    def _look_up(self, text: str) -> str:
        """Return the answer to the known question that is nearest, if it is near."""
        hits = self.index.search(text, 3)
        if hits:
            cosines = self.index.embedder.similarity([text], [hit.text for hit in hits])[0]
            if cosines.max() >= self.words["near"]:
                return str(hits[int(cosines.argmax())].metadata["answer"])
        return str(self.words["unknown"])


def open_shop(language: str, folder: Path, *, changes: Iterable[str] = (), progress: bool = True) -> Shop:
    """Train the model and build the index, if they are not in the folder yet."""
    words = tomllib.loads((HERE / f"{language}.toml").read_text(encoding="utf-8"))
    if not (folder / "intents" / "config.json").is_file():
        with tempfile.TemporaryDirectory() as scratch:
            rows = [json.dumps(row) for row in training_rows(words)]
            data = Path(scratch, "train.jsonl")
            data.write_text("\n".join(rows), encoding="utf-8")
            settings = elmokit.task_settings("intent", [*SETTINGS, *changes])
            out = folder / "intents"
            elmokit.train(
                "intent",
                data,
                encoder=language,
                out=out,
                settings=settings,
                overwrite=True,
                progress=progress,
            )
    known = [
        Document(id=phrase, text=phrase, metadata={"answer": answered["answer"]})
        for answered in words["faq"]
        for phrase in answered["say"]
    ]
    index = elmokit.Index.build(known, folder / "index", model=language, overwrite=True)
    return Shop(words, elmokit.IntentModel.load(folder / "intents"), index)


def talk(shop: Shop) -> None:
    """Answer lines from the terminal, or from a pipe, until they end."""
    prompt = "> " if sys.stdin.isatty() else ""
    try:
        while True:
            said = input(prompt).strip()
            if said:
                print(shop.reply(said), flush=True)
    except (EOFError, KeyboardInterrupt):
        print(("\n" if prompt else "") + shop.words["goodbye"])


def main() -> None:
    """Open the shop and talk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("language", nargs="?", choices=("en", "zh"), default="en")
    parser.add_argument("--demo", action="store_true", help="show a conversation that is written down")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the trained model is kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            shop = open_shop(arguments.language, arguments.keep or Path(scratch))
        except KeyboardInterrupt:
            raise SystemExit("\ninterrupted before the shop was open") from None
        if arguments.demo:
            for said in shop.words["demo"]:
                print(f"> {said}\n{shop.reply(said)}")
        else:
            talk(shop)


if __name__ == "__main__":
    main()
