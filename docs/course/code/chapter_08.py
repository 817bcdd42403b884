"""Chapter 8: tasks."""

# --- names in a text
import elmokit

text = "Ada Lovelace lived in London and worked with Charles Babbage ."
prediction = elmokit.load_task("ner-en").predict(text)
for token, tag in zip(prediction.tokens, prediction.tags, strict=True):
    print(f"{token:9} {tag}")
for span in prediction.spans:
    print(f"{span.label} {span.probability:.2f} {span.text}")

# --- names in Chinese
chinese = elmokit.load_task("ner-zh").predict(
    "钱学森出生于上海，后来在美国加州理工学院学习。"
)
for span in chinese.spans:
    print(f"{span.label} {span.probability:.2f} {span.text}")

# --- the best path by hand
import numpy as np

tags = ["O", "B", "I"]
# (words, tags)
emissions = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 0.9], [2.0, 0.5, 1.0]])
# (from, to)
transitions = np.array([[0.5, 0.0, -9.0], [0.0, -1.0, 1.0], [0.0, 0.0, 0.5]])

best = emissions[0]
back = []
for emission in emissions[1:]:
    through = best[:, None] + transitions + emission[None]  # (from, to)
    back.append(through.argmax(axis=0))
    best = through.max(axis=0)
    print({tag: float(value) for tag, value in zip(tags, best.round(2), strict=True)})
path = [int(best.argmax())]
for came_from in reversed(back):
    path.insert(0, int(came_from[path[0]]))
print("Viterbi:", [tags[tag] for tag in path])
print("each word alone:", [tags[tag] for tag in emissions.argmax(axis=1)])

# --- all paths
from itertools import product

scores = {}
for path_tried in product(range(3), repeat=3):
    score = sum(emissions[word, tag] for word, tag in enumerate(path_tried))
    score += sum(
        transitions[a, b] for a, b in zip(path_tried, path_tried[1:], strict=False)
    )
    scores[path_tried] = score
first, second = sorted(scores, key=lambda tried: -scores[tried])[:2]
total = sum(np.exp(score) for score in scores.values())
for tried in (first, second):
    probability = np.exp(scores[tried]) / total
    print(
        [tags[tag] for tag in tried],
        f"score {scores[tried]:.1f}, probability {probability:.2f}",
    )

# --- F1 by hand
# Label, first word, word after the last
gold = {
    ("PER", 0, 2),
    ("LOC", 4, 5),
    ("PER", 8, 10),
}
found = {("PER", 0, 2), ("LOC", 4, 5), ("PER", 9, 10), ("ORG", 6, 7)}
right = len(gold & found)
precision, recall = right / len(found), right / len(gold)
f1 = 2 * precision * recall / (precision + recall)
print(f"precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}")

# --- who did what to whom
print(elmokit.load_task("roles-en").predict("Ada sold Grace a book in London."))

# --- a task of our own
from pathlib import Path

FRAMES = [
    "will it rain in {} {}",
    "what is the weather in {} {}",
    "is it cold in {} {}",
    "show me the forecast for {} {}",
]
CITIES = {
    "train": ["Paris", "Vienna", "Madrid", "Berlin", "Chicago"],
    "test": ["London", "Boston", "Rome"],
}
DAYS = {
    "train": ["today", "tomorrow", "on Monday", "on Friday"],
    "test": ["tonight", "on Sunday"],
}


def tagged(part):
    """Return sentences: a word and its tag on each line, then an empty line."""
    lines = []
    for frame in FRAMES:
        for city in CITIES[part]:
            for day in DAYS[part]:
                before, _ = frame.split(" {} ")
                lines += [f"{word} O" for word in before.split()]
                lines.append(f"{city} B-CITY")
                lines += [
                    f"{word} {'I' if place else 'B'}-DAY"
                    for place, word in enumerate(day.split())
                ]
                lines.append("")
    return "\n".join(lines) + "\n"


for part in ("train", "test"):
    Path(f"{part}.txt").write_text(tagged(part), encoding="utf-8")
print(tagged("train").split("\n\n")[2])

# --- training the tagger (trained)
settings = elmokit.task_settings(
    "tagger", ["head.rnn=32", "training.least_steps=10", "training.batch=8"]
)
for encoder in ("words", "en"):
    trained = elmokit.train(
        elmokit.Tagger,
        "train.txt",
        dev="test.txt",
        encoder=encoder,
        out=f"weather-{encoder}",
        epochs=4,
        settings=settings,
    )
    print(f"{encoder}: F1 {trained.scores.value:.2f} on new cities and days")

# --- using it (varies)
for span in trained.model.predict("is it warm in Amsterdam on Tuesday").spans:
    print(span.label, span.text)

# --- the picture
from course import picture

with picture("chapter_08_viterbi", 6.4, 3.4) as figure:
    axes = figure.subplots()
    for word in range(2):
        for a in range(3):
            for b in range(3):
                on_path = (path[word], path[word + 1]) == (a, b)
                axes.plot(
                    [word, word + 1],
                    [2 - a, 2 - b],
                    color="#D55E00" if on_path else "0.85",
                    lw=3 if on_path else 1,
                    zorder=2 if on_path else 1,
                )
    for word in range(3):
        for tag in range(3):
            axes.scatter(word, 2 - tag, s=900, color="white", ec="0.3", zorder=3)
            axes.text(
                word,
                2 - tag,
                f"{emissions[word, tag]:g}",
                ha="center",
                va="center",
                zorder=4,
            )
    axes.set(
        xticks=range(3),
        xticklabels=[f"word {n}  第 {n} 词" for n in (1, 2, 3)],
        yticks=range(3),
        yticklabels=tags[::-1],
    )
    axes.set(xlim=(-0.35, 2.35), ylim=(-0.4, 2.4))

# --- answer 1
for tried in ([1, 2, 0], [1, 0, 0]):
    print([tags[tag] for tag in tried], f"{scores[tuple(tried)]:.1f}")

# --- answer 2
for right, wrong, missed in ((8, 2, 4), (8, 0, 8)):
    p, r = right / (right + wrong), right / (right + missed)
    print(f"precision {p:.2f}, recall {r:.2f}, F1 {2 * p * r / (p + r):.2f}")

# --- end
