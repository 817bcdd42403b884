"""Chapter 10: limits, compression, long documents, few labels."""

# --- eight bits by hand
import numpy as np

weights = np.array([0.12, -0.50, 0.33, 0.07])
scale = np.abs(weights).max() / 127
stored = np.round(weights / scale).astype(np.int8)
print(f"scale {scale:.5f}, stored {stored}, read back {(stored * scale).round(4)}")

# --- eight bits in the model
import elmokit
from course import cosine

LINES = [
    "They sat on the bank of the river and watched the boats .",
    "The bank raised its interest rates when prices rose .",
    "A solar cell makes electricity from light .",
    "The play had its first night in London , and the critics praised it .",
]
exact = elmokit.load("en").embed(LINES)
fast = elmokit.load("en", precision="int8").embed(LINES)
near = [
    cosine(a, b)
    for x, y in zip(exact, fast, strict=True)
    for a, b in zip(x.vectors, y.vectors, strict=True)
]
print(f"float32 and int8: cosine {np.mean(near):.4f}, at least {min(near):.4f}")

# --- fewer numbers
from village import sentences

elmo = elmokit.load("en", mix="top")
lines = [english.split() for english, _ in sentences(300, seed=6)]
found = elmo.embed(lines)
vectors = np.concatenate([sentence.vectors for sentence in found])
centre = vectors.mean(axis=0)
_, strength, directions = np.linalg.svd(vectors - centre, full_matrices=False)
banks = np.array(
    [
        s.vectors[line.index("bank")]
        for s, line in zip(found, lines, strict=True)
        if "bank" in line
    ]
)
meaning = np.array(["water" in line for line in lines if "bank" in line])
for size in (384, 64, 16, 4, 1):
    small = (banks - centre) @ directions[:size].T
    kept = (strength[:size] ** 2).sum() / (strength**2).sum()
    middle = [small[meaning == kind].mean(axis=0) for kind in (False, True)]
    guess = np.linalg.norm(small - middle[1], axis=1) < np.linalg.norm(
        small - middle[0], axis=1
    )
    right = np.mean(guess == meaning)
    print(
        f"{size:3} numbers: {kept:.0%} of the differences, {right:.0%} of the banks told apart"
    )

# --- how far it sees
text = """{} lived in a small house near the river , and when the winter came and
the snow lay on the roof , nobody in the village saw a light in the windows ."""
one, other = elmo.embed([text.format(name).split() for name in ("Mary", "Wolves")])
half = elmo.dim // 2
change = np.linalg.norm(one.vectors[:, :half] - other.vectors[:, :half], axis=1)
change /= np.linalg.norm(one.vectors[:, :half], axis=1)
for distance in (0, 1, 2, 5, 10, 20, 30):
    print(
        f"{distance:2} words later, {one.tokens[distance]:8} {change[distance]:.2f}"
    )

# --- one sentence after another
pair = ["The bank of the river was muddy .", "It was far from the town ."]
alone = elmokit.load("en").embed(pair[1])
after = elmokit.load("en").embed(pair)[1]
carried = elmokit.load("en", stateful=True)
carried.embed(pair[0])
told = carried.embed(pair[1])
print(f"in company: cosine {cosine(alone.vectors[0], after.vectors[0]):.3f}")
print(f"state carried on: cosine {cosine(alone.vectors[0], told.vectors[0]):.3f}")

# --- few labels
from topics import topics


def accuracy(train, test, vectors_of):
    """Give each test text the label with the nearest mean; return the share that is right."""
    known = vectors_of([text for _, text in train])
    labels = np.array([label for label, _ in train])
    kinds = sorted(set(labels))
    means = np.array([known[labels == kind].mean(axis=0) for kind in kinds])
    asked = vectors_of([text for _, text in test])
    distance = np.linalg.norm(asked[:, None] - means[None], axis=2)
    return np.mean(
        [
            kinds[at] == label
            for at, (label, _) in zip(distance.argmin(axis=1), test, strict=True)
        ]
    )


def bag_of_words(language):
    split = str.split if language == "en" else list
    texts = [text for part in ("train", "test") for _, text in topics(language, part)]
    words = sorted({word for text in texts for word in split(text)})
    return lambda texts: np.array(
        [[split(text).count(word) for word in words] for text in texts]
    )


def largest(language):
    elmo = elmokit.load(language)
    return lambda texts: np.array(
        [found.vectors.max(axis=0) for found in elmo.stream(texts)]
    )


curves = {}
for language in ("en", "zh"):
    test = topics(language, "test")
    for name, reader in [
        ("bag of words 词袋", bag_of_words(language)),
        ("ELMo", largest(language)),
    ]:
        known = [topics(language, "train", nouns) for nouns in (1, 2, 3, 4)]
        curves[language, name] = [accuracy(train, test, reader) for train in known]
        print(
            language,
            name,
            " ".join(f"{value:.2f}" for value in curves[language, name]),
        )

# --- the picture of the reach
from course import picture

with picture("chapter_10_reach", 7.2, 3.2) as figure:
    axes = figure.subplots()
    axes.bar(range(len(change)), change)
    axes.set(
        xticks=range(len(change)), ylabel="change of the forward half\n前向一半的变化"
    )
    axes.set_xticklabels(["Mary/Wolves", *one.tokens[1:]], rotation=90, fontsize=8)

# --- the picture of few labels
with picture("chapter_10_few", 7.2, 3.2) as figure:
    for axes, language, title in zip(
        figure.subplots(1, 2, sharey=True),
        ("en", "zh"),
        ("English", "中文"),
        strict=True,
    ):
        for (of, name), values in curves.items():
            if of == language:
                axes.plot(range(1, 5), values, "o-", label=name)
        axes.axhline(1 / 3, color="0.6", lw=0.8, ls=":")
        axes.set(
            title=title,
            xticks=range(1, 5),
            ylim=(0, 1.05),
            xlabel="known nouns of each kind  每类已知的名词数",
        )
    figure.axes[0].set_ylabel("accuracy 正确率")
    figure.axes[1].legend(loc="lower right")

# --- answer 1
weights = np.array([0.2, -0.1, 0.05])
scale = 0.2 / 127
print(
    np.round(weights / scale).astype(int),
    (np.round(weights / scale) * scale).round(4),
)

# --- answer 2
rows, tokens = 3 * 384 * 4, 100_000_000
print(f"{rows} bytes a word, {rows * tokens / 1e9:.0f} GB")
print(f"top layer, 64 numbers of two bytes: {64 * 2 * tokens / 1e9:.1f} GB")

# --- end
