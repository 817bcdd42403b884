"""Tiny labelled data, and settings that learn it by heart in a second."""

import json

from elmokit.tasks import task_settings

PEOPLE, PLACES, VERBS = (
    ("Ada", "Alan", "Grace Hopper"),
    ("Paris", "Rome", "New York"),
    ("saw", "left", "likes"),
)


def sentences():
    """All ways to say that someone did something to some place: (words, BIO tags, what was done)."""
    for person in PEOPLE:
        for verb in VERBS:
            for place in PLACES:
                words, tags = [], []
                for text, kind in ((person, "PER"), (verb, None), (place, "LOC"), (".", None)):
                    for number, word in enumerate(text.split()):
                        words.append(word)
                        tags.append("O" if kind is None else f"{'I' if number else 'B'}-{kind}")
                yield words, tags, verb


def quick_settings(task, *changes):
    """Settings that learn little data by heart in a second."""
    return task_settings(
        task,
        [
            "head.rnn=16",
            "head.dropout=0",
            "encoder.dropout=0",
            "training.learning_rate=0.02",
            "training.epochs=12",
            "training.patience=12",
            "training.batch=9",
            "training.least_steps=1",
            *changes,
        ],
    )


def write_tagged(folder, part):
    """A token and its tag on each line."""
    blocks = ("\n".join(map("\t".join, zip(w, t, strict=True))) for w, t, _ in sentences())
    (folder / f"{part}.txt").write_text("\n\n".join(blocks) + "\n")


def write_labelled(folder, part):
    """A table of labels and texts."""
    rows = [f"{verb}\t{' '.join(words)}" for words, _, verb in sentences()]
    (folder / f"{part}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")


def write_intents(folder, part):
    """Three files side by side in a folder."""
    (folder / part).mkdir()
    words, tags, verbs = zip(*sentences(), strict=True)
    for name, lines in (("seq.in", map(" ".join, words)), ("seq.out", map(" ".join, tags)), ("label", verbs)):
        (folder / part / name).write_text("\n".join(lines) + "\n")


def write_pairs(folder, part):
    """A table of labels and pairs: was the same done?"""
    rows = []
    for number, (words, _, verb) in enumerate(sentences()):
        other = VERBS[number % 2]
        same = "yes" if other == verb else "no"
        rows.append(f"{same}\t{' '.join(words)}\t{words[0]} {other} it .")
    (folder / f"{part}.tsv").write_text("\n".join(["label\tpremise\thypothesis", *rows]) + "\n")


def write_questions(folder, part):
    """Questions about people and places in the format of SQuAD."""
    paragraphs = []
    for number, (words, _, _) in enumerate(sentences()):
        text = " ".join(words)
        person, place = next(one for one in PEOPLE if one in text), next(one for one in PLACES if one in text)
        wanted, question = ((person, "Who ?"), (place, "Where ?"))[number % 2]
        answer = {"text": wanted, "answer_start": text.index(wanted)}
        asked = {"id": f"q{number}", "question": question, "answers": [answer]}
        paragraphs.append({"context": text, "qas": [asked]})
    data = {"version": "1.1", "data": [{"title": "all", "paragraphs": paragraphs}]}
    (folder / f"{part}.json").write_text(json.dumps(data))


def write_frames(folder, part):
    """One predicate in a sentence, and none in the last one, which is a word."""
    roles = {"PER": "ARG0", "LOC": "ARG1"}
    blocks = []
    for words, tags, verb in sentences():
        rows = []
        for number, (word, tag) in enumerate(zip(words, tags, strict=True), start=1):
            letter, _, kind = tag.partition("-")
            role = "B-V" if word == verb else f"{letter}-{roles[kind]}" if kind else "O"
            sense = (verb, f"{verb}.01") if word == verb else ("_", "_")
            rows.append("\t".join([str(number), word, "X", *sense, role]))
        blocks.append("\n".join(rows))
    blocks[-1] = "\t".join(["1", "Rome", "X", "_", "_"])
    (folder / f"{part}.tsv").write_text("\n\n".join(blocks) + "\n")


def write_documents(folder, part):
    """Documents of two sentences: someone does something, and "She" does it again."""
    blocks = []
    for number, (words, tags, verb) in enumerate(sentences()):
        rows = [f"# begin document {number}"]
        for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
            alone = not tags[place + 1 : place + 2] or not tags[place + 1].startswith("I-")
            brackets = {"B-PER": "(1)" if alone else "(1", "I-PER": "1)"}.get(tag, "_")
            rows.append(f"{place}\t{word}\t{brackets}")
        rows += ["", "0\tShe\t(1)", f"1\t{verb}\t_", "2\tRome\t_"]
        blocks.append("\n".join(rows))
    (folder / f"{part}.conll").write_text("\n\n".join(blocks) + "\n")


def write_relations(folder, part):
    """Marked entities and what one does to the other, in both orders of the text."""
    rows = []
    for number, (words, _, verb) in enumerate(sentences()):
        text = " ".join(words)
        person, place = next(one for one in PEOPLE if one in text), next(one for one in PLACES if one in text)
        text = text.replace(person, f"<e1>{person}</e1>").replace(place, f"<e2>{place}</e2>")
        label = "Other" if verb == "likes" else f"{verb}(e1,e2)"
        rows.append(f"{number}\t{label}\t{text}")
    (folder / f"{part}.tsv").write_text("\n".join(rows) + "\n")


OTHER_WORDS = {"saw": "sah", "left": "verließ", "likes": "mag", "New": "Neu"}


def write_translations(folder, part):
    """A table of sentences and their translations."""
    rows = []
    for words, _, _ in sentences():
        rows.append(f"{' '.join(words)}\t{' '.join(OTHER_WORDS.get(word, word) for word in words)}")
    (folder / f"{part}.tsv").write_text("\n".join(rows) + "\n")


def write_dialogues(folder, part):
    """Dialogues of two and three turns."""
    rows = []
    for number, (words, _, verb) in enumerate(list(sentences())[:18]):  # with 27 replies
        turns = [" ".join(words), f"Who {verb} it ?", f"{words[0]} did ."]
        rows.append("\t".join(turns[: 2 + number % 2]))
    (folder / f"{part}.tsv").write_text("\n".join(rows) + "\n")


TEXTS = ["Grace Hopper left New York.", "", ["Ada", "saw"]]

# For each task: what writes its tiny data, and what it is asked to predict. A new task adds a line to both.
INPUTS = dict.fromkeys(("tagger", "classifier", "intent", "roles", "coreference", "translate"), TEXTS) | {
    "entailment": [("Ada saw Rome .", "Ada saw it ."), "Ada left .\tAda saw it .", "", (["Ada"], [])],
    "reading": [("Who ?", "Ada saw Rome ."), "Where ?\tAda left New York .", "", (["Who"], [])],
    "relations": [
        "<e1>Grace Hopper</e1> left <e2>New York</e2>.",
        {"text": "Ada saw Rome .", "entities": [{"start": 0, "end": 3}, {"start": 8, "end": 12}]},
        "",
        ["Ada", "saw"],
    ],
    "reply": ["Ada saw Rome .\tWho saw it ?", "Ada left .", "", {"turns": ["Ada saw .", ["Who", "?"]]}],
}
WRITERS = {
    "tagger": write_tagged,
    "classifier": write_labelled,
    "intent": write_intents,
    "entailment": write_pairs,
    "reading": write_questions,
    "roles": write_frames,
    "coreference": write_documents,
    "relations": write_relations,
    "translate": write_translations,
    "reply": write_dialogues,
}
