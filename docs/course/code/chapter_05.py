"""Chapter 5: pretraining, live, on a small text."""

# --- the text
from pathlib import Path

from village import sentences

for name, seed, count in [("train", 1, 3000), ("held-out", 2, 300)]:
    made = sentences(count, seed=seed)
    for place, language in enumerate(("en", "zh")):
        lines = "\n".join(pair[place] for pair in made)
        Path(f"{name}-{language}.txt").write_text(lines + "\n", encoding="utf-8")

# --- the recipe
RECIPE = """
batch = 16              # sequences that are read at the same time
unroll = 20             # words that each of them reads before a step of learning
order = "sentence"      # sentences in random order
reset = 1.0             # every sentence starts with an empty memory
softmax = "full"
dropout = 0.0
learning_rate = 0.01
warmup = 30             # steps until the learning rate is reached

[model]
cell_dim = 128          # memory of an LSTM layer
projection_dim = 32     # numbers that it passes on, for each direction
"""
FILTERS = """
[model.encoder]
filters = [[1, 16], [2, 32], [3, 64]]
"""
Path("en.toml").write_text(RECIPE + FILTERS, encoding="utf-8")
Path("zh.toml").write_text('base = "characters"\n' + RECIPE, encoding="utf-8")

# --- training (trained)
import elmokit

for language in ("en", "zh"):
    preparation = {
        "split_sentences": False,
        "min_count": 1,
        "heldout": [f"held-out-{language}.txt"],
    }
    if language == "en":
        preparation["tokenizer"] = "whitespace"
    (found,) = elmokit.pretrain(
        f"train-{language}.txt",
        out=f"village-{language}",
        recipe=f"{language}.toml",
        language=language,
        preparation=preparation,
        epochs=5,
    )
    left, right = found.after.forward, found.after.backward
    print(f"{language}: {left:.2f} from the left, {right:.2f} from the right")

# --- the curve
import json
import math

curves = {}
for language in ("en", "zh"):
    lines = Path(f"village-{language}/training/metrics.jsonl").read_text(
        encoding="utf-8"
    )
    rows = [json.loads(line) for line in lines.splitlines()]
    curves[language] = [(row["tokens"], row["full_loss"]) for row in rows]

# --- the picture
from course import picture

with picture("chapter_05_curve", 7.2, 3.6) as figure:
    axes = figure.subplots()
    for (language, name), colour in zip(
        [("en", "English"), ("zh", "中文")], ("#0072B2", "#D55E00"), strict=True
    ):
        read = [tokens / 1000 for tokens, _ in curves[language]]
        for way, style in [("forward", "-"), ("backward", "--")]:
            values = [math.exp(loss[way]) for _, loss in curves[language]]
            axes.plot(
                read, values, style, lw=1.2, color=colour, label=f"{name}, {way}"
            )
    axes.axhline(2.06, color="0.5", ls=":", lw=1)
    axes.text(
        read[-1],
        2.15,
        "4-grams, English (chapter 2, 第二章)",
        color="0.4",
        ha="right",
        fontsize=8,
    )
    axes.set(
        xlabel="thousand words or characters read  已读的词或字（千）",
        ylabel="perplexity 困惑度",
        yscale="log",
    )
    axes.set(yticks=[2, 3, 5, 10, 30, 90], yticklabels=[2, 3, 5, 10, 30, 90])
    axes.minorticks_off()
    axes.legend()

# --- has it found the rules (trained)
from village import ANIMALS, PLACES

lm = elmokit.load_lm("village-en")
right = total = 0
for animal, (plural, _, _) in ANIMALS.items():
    for place, (places, _) in PLACES.items():
        for subject, end, wrong in [(animal, "s", ""), (plural, "", "s")]:
            for near in (place, places):
                start = f"the {subject} near the old {near} sleep"
                good, bad = lm.score(f"{start}{end} ."), lm.score(f"{start}{wrong} .")
                right += good.forward[6] > bad.forward[6]
                total += 1
print(f"verb agrees with the subject: {right} of {total}")

chinese = elmokit.load_lm("village-zh")
measures = {measure for _, _, measure in ANIMALS.values()}
right = total = 0
for _, animal, measure in ANIMALS.values():
    for look in "大小老黑白":
        lines = {
            one: chinese.score(f"河边的一{one}{look}{animal}在睡觉。")
            for one in measures
        }
        right += max(lines, key=lambda one: lines[one].backward[4]) == measure
        total += 1
print(f"measure word fits the noun: {right} of {total}")

# --- what it writes (varies)
import torch

generator = torch.Generator().manual_seed(1)
for start in ("anna", "the"):
    print(" ".join(lm.generate(start, generator=generator)))
print("".join(chinese.generate("安娜", generator=generator)))

# --- two banks in our own model (trained)
import numpy as np

elmo = elmokit.load("village-en")
lines = [
    english.split() for english, _ in sentences(600, seed=3) if " bank " in english
]
kinds = np.array(["water" in line for line in lines])
found = elmo.embed(lines)
for layer in range(3):
    vectors = np.array(
        [
            sentence.layers[layer, line.index("bank")]
            for sentence, line in zip(found, lines, strict=True)
        ]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = vectors @ vectors.T
    same = kinds[:, None] == kinds
    one, other = alike[same].mean(), alike[~same].mean()
    print(f"layer {layer}: same meaning {one:.2f}, other meaning {other:.2f}")

# --- answer 1
for loss in (math.log(95), 0.57):
    print(f"loss {loss:.2f}, perplexity {math.exp(loss):.2f}")

# --- answer 2 (trained)
few = "\n".join(Path("train-en.txt").read_text(encoding="utf-8").splitlines()[:100])
Path("few-en.txt").write_text(few + "\n", encoding="utf-8")
preparation = {
    "split_sentences": False,
    "min_count": 1,
    "heldout": ["held-out-en.txt"],
    "tokenizer": "whitespace",
}
for epochs in (3, 30):
    (last,) = elmokit.pretrain(
        "few-en.txt",
        out=f"few-{epochs}",
        recipe="en.toml",
        language="en",
        preparation=preparation,
        epochs=epochs,
    )
    print(f"100 sentences, read {epochs} times: {last.after.mean:.2f}")

# --- end
