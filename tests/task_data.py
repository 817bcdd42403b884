"""Tiny labelled data, and settings that learn it by heart in a second."""

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


# For each task: what writes its tiny data. A new task adds a line.
WRITERS = {"tagger": write_tagged, "classifier": write_labelled, "intent": write_intents}
