"""Chapter 3: the character CNN, with an example that is worked by hand."""

# --- a word as numbers
import numpy as np
import torch
from torch import nn

letters = {
    "<": [0, 0],
    "c": [1, 0],
    "a": [0, 1],
    "t": [0.5, 0.5],
    "r": [0.5, 0],
    "s": [0, 0.5],
    ">": [0, 0],
}


def spell(word):
    """Return the vectors of the letters, with < before the word and > after it."""
    return torch.tensor(
        [letters[letter] for letter in f"<{word}>"], dtype=torch.float32
    )


print(spell("cat"))

# --- one filter by hand
# Weights for the first letter of a pair, for the second
filter_at = torch.tensor([[1.0, -1.0], [0.0, 2.0]])
bias = -0.5


def respond(word):
    characters = spell(word)
    return [
        float((filter_at * characters[t : t + 2]).sum() + bias)
        for t in range(len(characters) - 1)
    ]


for word in ("cat", "cart", "act"):
    print(word, respond(word), "max:", max(respond(word)))

# --- the same with torch
convolution = nn.Conv1d(in_channels=2, out_channels=1, kernel_size=2)
with torch.no_grad():
    # (1, 2, 2): filters, numbers of a letter, letters
    convolution.weight.copy_(filter_at.T)
    convolution.bias.fill_(bias)
    for word in ("cat", "cart", "act"):
        response = convolution(spell(word).T[None])  # (1, 1, C - 1)
        largest = response.max().relu().item()
        print(word, response.flatten().tolist(), "relu of max:", largest)

# --- a highway by hand
y, transformed, gate_input = 1.5, 0.4, 2.0
gate = 1 / (1 + np.exp(-gate_input))
print(f"gate {gate:.3f}, new y {gate * transformed + (1 - gate) * y:.3f}")

# --- inside the bundled model
import elmokit

bundle = elmokit.load_model("en")
shape = bundle.model.config.encoder
print("filters (width, number):", shape.filters)
print(
    "numbers of a character:",
    shape.embedding_dim,
    " characters of a word:",
    shape.max_characters,
)
numbers = sum(parameter.numel() for parameter in bundle.model.encoder.parameters())
print(f"the token encoder has {numbers:,} numbers")
print(
    f"a table for 60,000 words would have {60_000 * bundle.model.config.projection_dim:,}"
)

# --- words that nobody has seen
from course import cosine

elmo = elmokit.load("en")


def alone(word):
    return elmo.embed(word).layers[0, 0]


candidates = """government governor garden happy happiness unhappy
runner running walked walking Paris paris 1945 1844""".split()
unseen = ["goverment", "unhappyness", "walkking", "1846", "Pariss"]
table = np.array(
    [[cosine(alone(word), alone(other)) for other in candidates] for word in unseen]
)
for word, row in zip(unseen, table, strict=True):
    order = row.argsort()[::-1][:3]
    print(f"{word}: {', '.join(f'{candidates[i]} {row[i]:.2f}' for i in order)}")

# --- Chinese has no letters
chinese = elmokit.load("zh")
print(type(elmokit.load_model("zh").model.config.encoder).__name__)
s = chinese.embed("河边的桃花开了。")
print(s.tokens)
flowers = [chinese.embed(text).layers[0, 0] for text in ("河", "湖", "桃", "钱")]
print([round(cosine(flowers[0], other), 2) for other in flowers])

# --- the picture
from course import picture

with picture("chapter_03_filter", 8.6, 3.2) as figure:
    for axes, word in zip(
        figure.subplots(1, 3, sharey=True), ("cat", "cart", "act"), strict=True
    ):
        response = respond(word)
        pairs = [f"<{word}>"[t : t + 2] for t in range(len(response))]
        best = int(np.argmax(response))
        axes.bar(
            range(len(response)),
            response,
            color=[
                "#D55E00" if t == best else "#0072B2" for t in range(len(response))
            ],
        )
        axes.axhline(0, color="0.3", lw=0.8)
        axes.set(
            title=f"{word}: max {max(response):g}",
            xticks=range(len(pairs)),
            xticklabels=pairs,
        )
        axes.set_ylabel("response 响应" if word == "cat" else "")

# --- the picture of unseen words
with picture("chapter_03_unseen", 8.6, 3.4) as figure:
    axes = figure.subplots()
    image = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set(
        yticks=range(len(unseen)), yticklabels=unseen, xticks=range(len(candidates))
    )
    axes.set_xticklabels(candidates, rotation=40, ha="right")
    axes.spines[:].set_visible(False)
    figure.colorbar(image, label="cosine 余弦")

# --- answer 1
print("tact", respond("tact"), "max:", max(respond("tact")))

# --- answer 2
convolutions = sum(
    width * shape.embedding_dim * number + number for width, number in shape.filters
)
print(f"{convolutions:,} numbers in the convolutions")

# --- answer 3
for word in ("dog", "dogs", "god"):
    print(word, f"{cosine(alone('dog'), alone(word)):.2f}")

# --- end
