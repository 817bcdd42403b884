"""Chapter 6: the layers, and the scalar mix."""

# --- the sum by hand
import numpy as np

h1 = np.array([0.2, 0.4, 0.1, 0.3])
h2 = np.array([0.6, 0.1, 0.5, 0.2])
s = (0.3, 0.7)
print(s[0] * h1 + s[1] * h2)

# --- the same with elmokit
import torch

import elmokit

layers = torch.tensor(np.array([h1, h2]), dtype=torch.float32)  # (layers, numbers)
mix = elmokit.ScalarMix(2, kind="fixed", weights=[0.3, 0.7])
print(mix(layers))

# --- weights that always sum to one
w = np.array([0.0, 0.8473])
powers = np.exp(w)
print("exp(w):", powers.round(3), " s:", (powers / powers.sum()).round(3))
mix = elmokit.ScalarMix(2, weights=[0.0, 0.8473], gamma=2.0)
print(mix(layers).detach())

# --- one step of learning
mix = elmokit.ScalarMix(2)
target = torch.tensor([0.6, 0.1, 0.5, 0.2])  # the upper layer, as it happens
loss = (mix(layers) - target).square().sum()
loss.backward()
print(f"loss {loss.item():.3f}, gradients of w:", mix.weights.grad.numpy().round(3))

# --- layers and tasks
from village import sentences

elmo = elmokit.load("en")
lines = [
    english.split() for english, _ in sentences(800, seed=4) if " bank " in english
]
found = elmo.embed(lines)


def learn(vectors, labels, steps=400):
    """Train a mix and a linear classifier on vectors (words, layers, numbers); return s."""
    torch.manual_seed(1)
    mix, linear = elmokit.ScalarMix(3), torch.nn.Linear(vectors.shape[-1], 2)
    rates = [(mix, 0.05), (linear, 0.003)]
    optimizer = torch.optim.Adam(
        [{"params": part.parameters(), "lr": rate} for part, rate in rates]
    )
    layers = vectors.transpose(0, 1)  # (layers, words, numbers)
    # So that no layer is louder than another
    layers = layers / layers.std(dim=(1, 2), keepdim=True)
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(linear(mix(layers)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.softmax(mix.weights, dim=0).detach().numpy()


def word_vectors(words):
    return torch.tensor(
        np.array([found[line].layers[:, place] for line, place in words])
    )


everything = [
    (line, place)
    for line, words in enumerate(lines[:60])
    for place in range(len(words))
]
long = [int(len(lines[line][place]) > 4) for line, place in everything]
banks = [(line, words.index("bank")) for line, words in enumerate(lines)]
meaning = [int("water" in words) for words in lines]

# --- what the weights say (trained)
shares = {
    "a long word? 长词吗？": learn(word_vectors(everything), torch.tensor(long)),
    "which bank? 哪个 bank？": learn(word_vectors(banks), torch.tensor(meaning)),
}
for name, values in shares.items():
    print(name, values.round(2))

# --- the bundled task models
for name in ("ner-en", "roles-en"):
    for learnt in elmokit.load_task(name).inputs.learnt_mixes():
        print(
            f"{name}, {learnt.place}: layers",
            np.round(learnt.shares, 2),
            f"gamma {learnt.gamma:.2f}",
        )
        shares[f"{name}, {learnt.place}"] = learnt.shares

# --- choosing a mix
for choice in ("average", "top", [0.0, 1.0, 0.0]):
    vectors = (
        elmokit.load("en", mix=choice).embed("The bank raised its rates.").vectors
    )
    print(choice, vectors.shape, vectors[1, :3].round(2))

# --- the picture
from course import picture

with picture("chapter_06_shares", 7.6, 3.4) as figure:
    axes = figure.subplots()
    names = list(shares)[::-1]
    start = np.zeros(len(names))
    for layer, colour in zip(
        range(3), ("#56B4E9", "#E69F00", "#009E73"), strict=True
    ):
        values = np.array([shares[name][layer] for name in names])
        axes.barh(names, values, left=start, color=colour, label=f"layer {layer}")
        for row, value in enumerate(values):
            if value > 0.08:
                axes.text(
                    start[row] + value / 2,
                    row,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                )
        start += values
    axes.set(xlim=(0, 1), xlabel="share of the layer  各层的份额")
    axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))

# --- answer 1
print(0.5 * h1 + 0.5 * h2, 2 * (0.5 * h1 + 0.5 * h2))

# --- answer 2
mix = elmokit.ScalarMix(3, weights=[0.0, 1.0, 2.0])
print(mix.coefficients().detach().numpy().round(3))
print(f"{mix.regulariser(0.1).item():.3f}")

# --- end
