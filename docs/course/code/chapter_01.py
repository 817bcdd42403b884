"""Chapter 1: from bag of words to static vectors, and why *bank* breaks them."""

# --- counting words
import numpy as np

texts = [
    "the bank raised its rates",
    "the bank lowered its rates",
    "the cat slept in the garden",
]
words = sorted({word for text in texts for word in text.split()})
# (texts, words)
counts = np.array([[text.split().count(word) for word in words] for text in texts])
print(words)
print(counts)

# --- comparing texts
from course import cosine

print(f"texts 0 and 1: {cosine(counts[0], counts[1]):.2f}")
print(f"texts 0 and 2: {cosine(counts[0], counts[2]):.2f}")


# --- what a bag forgets
def bag(text):
    return np.array(
        [
            text.split().count(word)
            for word in ["bites", "cat", "dog", "feline", "man", "sleeps"]
        ]
    )


for a, b in [
    ("dog bites man", "man bites dog"),
    ("cat sleeps", "feline sleeps"),
    ("cat", "feline"),
]:
    print(f"{a} / {b}: {cosine(bag(a), bag(b)):.2f}")

# --- the company of words
from village import sentences

english = [pair[0].split() for pair in sentences(3000)]
words = sorted({word for sentence in english for word in sentence})
row = {word: number for number, word in enumerate(words)}
# How often word b stands at most two places from word a
together = np.zeros((len(words), len(words)))
for sentence in english:
    for place, word in enumerate(sentence):
        for near in (
            sentence[max(0, place - 2) : place] + sentence[place + 1 : place + 3]
        ):
            together[row[word], row[near]] += 1
print(len(words), "words")
alone = together.sum(axis=1)  # how many neighbours a word has
cat, the = row["cat"], row["the"]
print(
    f"cat has {alone[cat]:.0f} neighbours, of them {together[cat, the]:.0f} are the"
)
print(f"of all {alone.sum():.0f} neighbours {alone[the]:.0f} are the")

# --- static vectors
# If words stood beside each other by chance
expected = np.outer(alone, alone) / together.sum()
# Positive pointwise mutual information
surprise = np.log2(np.maximum(together / expected, 1))
left, strength, _ = np.linalg.svd(surprise)
vectors = left[:, :16] * np.sqrt(strength[:16])  # (words, 16)


def nearest(word):
    near = sorted(
        words, key=lambda other: -cosine(vectors[row[word]], vectors[row[other]])
    )
    return near[1:4]


for word in ["cat", "river", "anna", "hat"]:
    print(f"{word}: {', '.join(nearest(word))}")

# --- the picture of the words
from course import picture

shown = {
    "animals 动物": ["dog", "cat", "horse", "cow", "duck", "snake"],
    "people 人": ["anna", "mary", "tom", "paul"],
    "things 东西": ["hat", "book", "coat", "pen"],
    "actions 动作": ["sleeps", "eats", "drinks", "plays", "runs", "waits"],
    "places 地点": ["river", "house", "tree", "field"],
}
chosen = np.array(
    [vectors[row[word]] for several in shown.values() for word in several]
)
chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
# The two directions in which they differ most
plane = np.linalg.svd(chosen - chosen.mean(axis=0))[2][:2]
with picture("chapter_01_map", 7.2, 4.4) as figure:
    axes = figure.subplots()
    for name, several in shown.items():
        points = np.array([vectors[row[word]] for word in several])
        points = (points / np.linalg.norm(points, axis=1, keepdims=True)) @ plane.T
        axes.scatter(*points.T, s=70, label=f"{name}: {', '.join(several)}")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)

# --- one vector for bank
# The neighbours of each bank apart
halves = {
    "river": np.zeros(len(words)),
    "money": np.zeros(len(words)),
}
for sentence in english:
    if "bank" in sentence:
        place = sentence.index("bank")
        half = halves["river" if "water" in sentence else "money"]
        for near in sentence[place - 2 : place] + sentence[place + 1 : place + 3]:
            half[row[near]] += 1
both = halves["river"] + halves["money"]
print("together they are bank's row:", np.array_equal(both, together[row["bank"]]))


def surprising(counted):
    return np.log2(np.maximum(counted / (counted.sum() * alone / together.sum()), 1))


river, money, bank = (
    surprising(counted) for counted in (*halves.values(), together[row["bank"]])
)
print(f"river and money: {cosine(river, money):.2f}")
print(f"bank and river: {cosine(bank, river):.2f}")
print(f"bank and money: {cosine(bank, money):.2f}")

# --- a vector for each use
import elmokit


def use(elmo, sentence, word, layer):
    """Return the vector of a word (the mean of its characters in Chinese)."""
    found = elmo.embed(sentence)
    start, end = found.find(word)[0]
    return found.layers[layer, start:end].mean(axis=0)


BANK = [
    "They sat on the bank of the river.",
    "Trees grow on the bank of the stream.",
    "The bank raised its interest rates.",
    "The bank lends money to small companies.",
]
FLOWER = [
    "春天山上的花都开了。",
    "公园里的花很漂亮。",
    "他花了很多钱买房子。",
    "她花三百元买了衣服。",
]
tables = {}
for name, word, lines in [("en", "bank", BANK), ("zh", "花", FLOWER)]:
    elmo = elmokit.load(name)
    for layer in (0, 2):
        found = [use(elmo, line, word, layer) for line in lines]
        tables[word, layer] = np.array([[cosine(a, b) for b in found] for a in found])
        print(f"{word}, layer {layer}:")
        print(tables[word, layer].round(2))

# --- the picture of the uses
with picture("chapter_01_uses", 8.6, 4.6) as figure:
    for axes, word, lines in zip(
        figure.subplots(1, 2), ["bank", "花"], [BANK, FLOWER], strict=True
    ):
        axes.imshow(tables[word, 2], vmin=0.4, vmax=1, cmap="Blues")
        for (i, j), value in np.ndenumerate(tables[word, 2]):
            axes.text(
                j,
                i,
                f"{value:.2f}",
                ha="center",
                va="center",
                color="white" if value > 0.65 else "black",
            )
        axes.set(
            xticks=range(4),
            xticklabels="ABCD",
            yticks=range(4),
            yticklabels="ABCD",
            title=word,
        )
        axes.set_xlabel(
            "\n".join(
                f"{letter}  {line}"
                for letter, line in zip("ABCD", lines, strict=True)
            ),
            loc="left",
        )
        axes.spines[:].set_visible(False)

# --- answer 2
for size in (2, 8, 16, 93):
    vectors = left[:, :size] * np.sqrt(strength[:size])
    found = {word: ", ".join(nearest(word)) for word in ("cat", "hat")}
    print(f"{size} numbers: cat: {found['cat']}; hat: {found['hat']}")

# --- answer 3
elmo = elmokit.load("en")
spring = [
    "They married in the spring of 1912.",
    "He came home in the spring of that year.",
    "They drank from the spring in the hills.",
]
for layer in (0, 1, 2):
    a, b, c = (use(elmo, line, "spring", layer) for line in spring)
    same, other = cosine(a, b), cosine(a, c)
    print(
        f"layer {layer}: season and season {same:.2f}, season and water {other:.2f}"
    )

# --- end
