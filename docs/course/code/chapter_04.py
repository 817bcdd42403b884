"""Chapter 4: the LSTM, and a language model in both directions."""

# --- one cell by hand
import math


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def step(x, h, c):
    """One step of a cell with one number: its input x, its last output h and state c."""
    i = sigmoid(1.0 * x + 0.0 * h)  # input gate: how much of the new value is written
    f = sigmoid(0.0 * x + 0.0 * h + 2.0)  # forget gate: how much of the old is kept
    o = sigmoid(0.5 * x + 0.5 * h)  # output gate: how much of the state is shown
    j = math.tanh(2.0 * x + 1.0 * h)  # the new value
    c = f * c + i * j
    h = o * math.tanh(c)
    return h, c, (i, f, o, j)


h = c = 0.0
for x in (1.0, 0.0, 0.0, -1.0):
    h, c, (i, f, o, j) = step(x, h, c)
    gates = f"i {i:.3f}  f {f:.3f}  o {o:.3f}  j {j:+.3f}"
    print(f"x {x:+.0f}   {gates}   c {c:+.3f}  h {h:+.3f}")

# --- the same with torch
import torch
from torch import nn

cell = nn.LSTM(input_size=1, hidden_size=1, batch_first=True)
with torch.no_grad():  # torch's order of the gates: input, forget, new value, output
    cell.weight_ih_l0.copy_(torch.tensor([[1.0], [0.0], [2.0], [0.5]]))
    cell.weight_hh_l0.copy_(torch.tensor([[0.0], [0.0], [1.0], [0.5]]))
    cell.bias_ih_l0.copy_(torch.tensor([0.0, 2.0, 0.0, 0.0]))
    cell.bias_hh_l0.zero_()
    outputs, (h, c) = cell(torch.tensor([[[1.0], [0.0], [0.0], [-1.0]]]))
print([round(value, 3) for value in outputs.flatten().tolist()], round(c.item(), 3))

# --- what is left after twenty steps
for f in (0.5, 0.88, 0.99):
    print(f"f = {f}: {f**5:.3f} after 5 steps, {f**20:.6f} after 20")

# --- two directions
import numpy as np

import elmokit

elmo = elmokit.load("en")
lines = ["The bank raised its rates .", "The bank raised its fence ."]
first, second = elmo.embed([line.split() for line in lines])
half = elmo.dim // 2


def row(values):
    return "   ".join(
        f"{word} {value:.2f}"
        for word, value in zip(first.tokens, values, strict=True)
    )


for layer in range(3):
    change = np.abs(first.layers[layer] - second.layers[layer])  # (words, numbers)
    print(f"layer {layer}  forward   {row(change[:, :half].max(axis=1))}")
    print(f"         backward  {row(change[:, half:].max(axis=1))}")

# --- the two language models
lm = elmokit.load_lm("en")
score = lm.score("They sat on the bank of the river.")
print("word      from the left  from the right")
for word, left, right in zip(
    score.tokens, score.forward, score.backward, strict=True
):
    print(f"{word:8}  {math.exp(left):13.5f}  {math.exp(right):14.5f}")
print(f"perplexity {score.perplexity:.1f}")

# --- a gap from both sides
gap = "In the [MASK] of 1945 the war ended."
for by in ("forward", "backward", "both"):
    (found,) = lm.fill(gap, by=by)
    print(f"{by}: {', '.join(candidate.word for candidate in found[:5])}")
(found,) = elmokit.load_lm("zh").fill("他在北京[MASK]学学习。")
print("zh:", "、".join(candidate.word for candidate in found[:5]))

# --- the picture of the directions
from course import picture

with picture("chapter_04_directions", 7.2, 3.6) as figure:
    rows = []
    for layer in (2, 1, 0):
        change = np.abs(first.layers[layer] - second.layers[layer])
        rows += [change[:, :half].mean(axis=1), change[:, half:].mean(axis=1)]
    names = [f"layer {layer} {way}" for layer in (2, 1, 0) for way in ("→", "←")]
    axes = figure.subplots()
    image = axes.imshow(np.array(rows), cmap="Oranges", aspect="auto")
    axes.set(yticks=range(6), yticklabels=names, xticks=range(6))
    axes.set_xticklabels(["The", "bank", "raised", "its", "rates/fence", "."])
    axes.spines[:].set_visible(False)
    figure.colorbar(image, label="mean change 平均变化")

# --- the picture of the gates
with picture("chapter_04_memory", 7.2, 3.2) as figure:
    axes = figure.subplots()
    steps = np.arange(41)
    for f in (0.5, 0.88, 0.99):
        axes.plot(steps, f**steps, label=f"f = {f}")
    axes.set(
        xlabel="steps 步数", ylabel="what is left of c  c 的剩余", ylim=(0, 1.02)
    )
    axes.legend()

# --- answer 1
h, c, gates = step(0.0, 0.0, 1.0)
print(f"c {c:.3f}  h {h:.3f}")

# --- answer 2
for f in (0.88, 0.99):
    print(f"f = {f}: half is left after {math.log(0.5) / math.log(f):.1f} steps")

# --- answer 3
for line in (
    "The dogs that chased the cat were tired .",
    "The dogs that chased the cat was tired .",
):
    scored = lm.score(line)
    place = scored.tokens.index("tired") - 1
    left = math.exp(scored.forward[place])
    verb, total = scored.tokens[place], scored.total
    print(f"{verb}: from the left {left:.4f}, the whole {total:.2f}")

# --- end
