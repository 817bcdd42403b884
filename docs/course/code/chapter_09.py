"""Chapter 9: ELMo or BERT."""

# --- attention by hand
import numpy as np

# What each of three words offers
keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
values = np.array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])  # what it gives
query = np.array([2.0, 0.0])  # what the first word looks for
fit = keys @ query / np.sqrt(2)
weights = np.exp(fit) / np.exp(fit).sum()
print("fit:", fit.round(2), " weights:", weights.round(2))
print("result:", (weights @ values).round(2))

# --- two models of the same text
from pathlib import Path

import elmokit
from village import sentences

for name, seed, count in [("train", 1, 3000), ("held-out", 2, 200)]:
    lines = "\n".join(english for english, _ in sentences(count, seed=seed))
    Path(f"{name}.txt").write_text(lines + "\n", encoding="utf-8")

ELMO = """
batch = 16
order = "sentence"
reset = 1.0
softmax = "full"
dropout = 0.0
learning_rate = 0.01
warmup = 30
[model]
cell_dim = 128
projection_dim = 32
[model.encoder]
filters = [[1, 16], [2, 32], [3, 64]]
"""
BERT = """
vocabulary = 300
batch = 16
length = 48
nsp = false
learning_rate = 0.003
warmup = 100
[model]
layers = 2
hidden = 64
heads = 2
inner = 128
"""
Path("elmo.toml").write_text(ELMO, encoding="utf-8")
Path("bert.toml").write_text(BERT, encoding="utf-8")
preparation = {
    "tokenizer": "whitespace",
    "split_sentences": False,
    "min_count": 1,
    "heldout": ["held-out.txt"],
}
for kind, name, epochs in [("lstm", "elmo", 3), ("bert", "bert", 20)]:
    elmokit.pretrain(
        "train.txt",
        out=f"village-{name}",
        architecture=kind,
        recipe=f"{name}.toml",
        language="en",
        preparation=preparation,
        epochs=epochs,
    )

# --- filling gaps (trained)
import random

elmo = elmokit.load_lm("village-elmo")
bert = elmokit.MaskedLanguageModel("bert:village-bert")
readers = {
    "ELMo, from the left": lambda text: elmo.fill(text, top=1, by="forward"),
    "ELMo, from the right": lambda text: elmo.fill(text, top=1, by="backward"),
    "ELMo, both": lambda text: elmo.fill(text, top=1),
    "BERT": lambda text: bert.fill(text, top=1),
}
tests = []
rng = random.Random(1)
for english, _ in sentences(100, seed=5):
    words = english.split()
    place = rng.randrange(len(words) - 1)
    hidden = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
    tests.append((hidden, words[place]))
for name in readers:
    right = sum(readers[name](text)[0][0].word == word for text, word in tests)
    print(f"{name:21} {right} of {len(tests)}")

# --- between two sides (trained)
for text in (
    "anna [MASK] her big hat because she needs it .",
    "the [MASK] near the old house sleeps .",
):
    print(text)
    for name in ("ELMo, both", "BERT"):
        found = (elmo if name.startswith("E") else bert).fill(text, top=4)[0]
        shown = ", ".join(f"{one.word} {one.probability:.2f}" for one in found)
        print(f"  {name:11}", shown)

# --- what a word costs
size, pieces = 512, (16, 64, 256, 1024, 4096)
for n in pieces:
    lstm = 2 * n * 8 * size * size  # two directions; four gates of input and output
    # The weights, and each word with each word
    attention = n * 12 * size * size + 2 * n * n * size
    each = f"LSTM {lstm / n / 1e6:.1f}, attention {attention / n / 1e6:.1f}"
    print(f"{n:5} words: {each} million products a word")

# --- the picture
from course import picture

with picture("chapter_09_cost", 6.8, 3.4) as figure:
    axes = figure.subplots()
    n = np.array(pieces)
    axes.plot(n, np.full(len(n), 16 * size**2) / 1e6, "o-", label="biLSTM")
    axes.plot(n, (12 * size**2 + 2 * n * size) / 1e6, "o-", label="attention 注意力")
    axes.set(
        xscale="log", xticks=n, xticklabels=n, xlabel="words in the text  文本的词数"
    )
    axes.set(ylabel="million products a word\n每个词的乘法（百万）", ylim=(0, 8))
    axes.minorticks_off()
    axes.legend()

# --- answer 1
query = np.array([0.0, 2.0])
fit = keys @ query / np.sqrt(2)
weights = np.exp(fit) / np.exp(fit).sum()
print("weights:", weights.round(2), " result:", (weights @ values).round(2))

# --- end
