"""Chapter 7: feature or fine-tuning."""

# --- a step by hand
x, target, rate = 1.0, 1.0, 0.1
encoder, head = 0.5, 0.0  # one pretrained weight, and a new one that starts at zero
for step in range(1, 5):
    y = head * encoder * x
    slope = 2 * (y - target)  # of the loss (y - target)²
    for_head, for_encoder = slope * encoder * x, slope * head * x
    print(f"step {step}: y {y:.3f}, gradients {for_head:+.3f} and {for_encoder:+.3f}")
    head, encoder = head - rate * for_head, encoder - rate * for_encoder

# --- the data
from pathlib import Path

from topics import topics

for language in ("en", "zh"):
    for part in ("train", "test"):
        rows = topics(language, part)
        text = "\n".join(
            ["label\ttext", *(f"{label}\t{line}" for label, line in rows)]
        )
        Path(f"{part}-{language}.tsv").write_text(text + "\n", encoding="utf-8")
        print(language, part, len(rows), *rows[0])

# --- three ways
import time

import elmokit


def train(name, encoder, language, changes):
    changes = ["training.batch=8", "training.least_steps=9", "head.rnn=32", *changes]
    return elmokit.train(
        elmokit.Classifier,
        f"train-{language}.tsv",
        dev=f"test-{language}.tsv",
        encoder=encoder,
        out=name,
        epochs=8,
        settings=elmokit.task_settings("classifier", changes),
    )


ways = {
    "words only": ("words", []),
    "frozen": ("elmo", []),
    "tuned": ("elmo", ["encoder.tune_from=0", "encoder.learning_rate=0.0003"]),
}
runs, seconds = {}, {}
for language in ("en", "zh"):
    for name, (encoder, changes) in ways.items():
        chosen = language if encoder == "elmo" else encoder
        start = time.process_time()
        runs[language, name] = train(f"{name}-{language}", chosen, language, changes)
        seconds[language, name] = time.process_time() - start

# --- how well (trained)
for (language, name), found in runs.items():
    print(f"{language} {name:10} accuracy {found.scores.value:.2f}")

# --- at what cost (varies)
for (language, name), spent in seconds.items():
    print(f"{language} {name:10} {spent:.1f} s of the processor")

# --- the picture
from course import picture

with picture("chapter_07_ways", 7.2, 3.4) as figure:
    for axes, language, title in zip(
        figure.subplots(1, 2, sharey=True),
        ("en", "zh"),
        ("English", "中文"),
        strict=True,
    ):
        for name in ways:
            history = runs[language, name].history
            axes.plot(
                range(1, len(history) + 1),
                [epoch["dev"] for epoch in history],
                "o-",
                ms=3,
                label=name,
            )
        axes.axhline(1 / 3, color="0.6", lw=0.8, ls=":")
        axes.set(title=title, xlabel="epochs 轮数", ylim=(0, 1.05))
    figure.axes[0].set_ylabel("accuracy, unseen words\n没见过的词的正确率")
    figure.axes[1].legend(loc="lower right")

# --- answer 1
encoder, head = 0.5, 0.4
y = head * encoder * 1.0
print(
    f"y {y:.2f}, gradients {2 * (y - 1) * encoder:.2f} and {2 * (y - 1) * head:.2f}"
)

# --- answer 2
whole = sum(
    parameter.numel() for parameter in elmokit.load_model("en").model.parameters()
)
head = sum(parameter.numel() for parameter in runs["en", "frozen"].model.parameters())
print(f"{whole:,} weights in en, {head:,} in the task model")

# --- end
