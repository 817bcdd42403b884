"""Chapter 2: n-gram and neural language models."""

# --- a probability by hand
from collections import Counter
from fractions import Fraction

tiny = ["<s> the cat sleeps </s>", "<s> the dog sleeps </s>", "<s> the cat eats </s>"]
pairs = Counter(
    pair
    for line in tiny
    for pair in zip(line.split(), line.split()[1:], strict=False)
)
before = Counter(word for line in tiny for word in line.split()[:-1])


def p(word, previous):
    return Fraction(pairs[previous, word], before[previous])


line = "<s> the cat sleeps </s>".split()
product = Fraction(1)
for previous, word in zip(line, line[1:], strict=False):
    print(f"p({word} | {previous}) = {p(word, previous)}")
    product *= p(word, previous)
print("product:", product)

# --- perplexity by hand
targets = len(line) - 1
print(f"perplexity: {float(product) ** (-1 / targets):.3f}")
print("p(eats | dog) =", p("eats", "dog"))

# --- the village
from village import sentences

train = {"en": [], "zh": []}
held_out = {"en": [], "zh": []}
for kept, made in [(train, sentences(3000)), (held_out, sentences(300, seed=2))]:
    kept["en"] = [english.split() for english, _ in made]
    kept["zh"] = [list(chinese) for _, chinese in made]
print(" ".join(train["en"][4]))
print(" ".join(train["zh"][4]))
for language, lines in train.items():
    different = len({token for line in lines for token in line})
    print(language, sum(map(len, lines)), "tokens,", different, "different")

# --- n-grams
import math


class NGrams:
    """Count what follows each n-1 tokens, with `add` more, so that none is zero."""

    def __init__(self, lines, n, add=0.1):
        self.n, self.add, self.size = (
            n,
            add,
            len({token for line in lines for token in line}) + 1,
        )
        self.grams, self.contexts = Counter(), Counter()
        for line in lines:
            for context, token in self.steps(line):
                self.grams[context, token] += 1
                self.contexts[context] += 1

    def steps(self, line):
        padded = ["<s>"] * (self.n - 1) + line + ["</s>"]
        for end in range(self.n - 1, len(padded)):
            yield tuple(padded[end - self.n + 1 : end]), padded[end]

    def loss(self, line):
        """Return -log p of each token of a line and of its end."""
        return [
            -math.log(
                (self.grams[context, token] + self.add)
                / (self.contexts[context] + self.add * self.size)
            )
            for context, token in self.steps(line)
        ]


def perplexity(losses):
    return math.exp(sum(losses) / len(losses))


found = {}
for language in ("en", "zh"):
    for n in range(1, 8):
        model = NGrams(train[language], n)
        found[language, n] = perplexity(
            [loss for line in held_out[language] for loss in model.loss(line)]
        )
    print(language, " ".join(f"n={n}: {found[language, n]:.2f}" for n in range(1, 8)))

# --- the best that is possible
# The logarithm of the number of choices, rule by rule (see village.py).
time_of_day = 0.3 * math.log(3 / 0.3) + 0.7 * math.log(1 / 0.7)
rules = [math.log(n) for n in (6 * 6 * 4 * 5 * 2 * 2, 4 * 5 * 2 * 3 * 2, 3**4, 3**4)]
choices = math.log(4) + sum(rules) / 4 + time_of_day
length = sum(len(line) + 1 for line in train["en"]) / len(train["en"])
limit = math.exp(choices / length)
print(
    f"{choices:.2f} nats and {length:.1f} targets a sentence: perplexity {limit:.2f}"
)

# --- what three words cannot see
three = NGrams(train["en"], 4)
for subject in ("dog", "dogs"):
    line = f"the {subject} near the old houses".split()
    context = tuple(line[-3:])
    share = {
        verb: three.grams[context, verb] / three.contexts[context]
        for verb in ("sleep", "sleeps")
    }
    rounded = {verb: round(value, 2) for verb, value in share.items()}
    print(subject, "…", " ".join(context), rounded)

# --- a neural language model
import torch
from torch import nn

torch.manual_seed(1)
vocabulary = ["<s>", "</s>", *sorted({word for line in train["en"] for word in line})]
number = {word: place for place, word in enumerate(vocabulary)}


def windows(lines, width):
    """Return the numbers of `width` words and of the next word, for every place."""
    rows = []
    for line in lines:
        padded = [number[word] for word in ["<s>"] * width + line + ["</s>"]]
        rows += [
            padded[start : start + width + 1] for start in range(len(padded) - width)
        ]
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, -1]


class Neural(nn.Module):
    """Bengio et al. (2003): vectors of the last words, a hidden layer, a softmax."""

    def __init__(self, width, size=16, hidden=64):
        super().__init__()
        self.vectors = nn.Embedding(len(vocabulary), size)
        self.hidden = nn.Linear(width * size, hidden)
        self.output = nn.Linear(hidden, len(vocabulary))

    def forward(self, context):
        together = self.vectors(context).flatten(1)  # (windows, width · size)
        return self.output(torch.tanh(self.hidden(together)))


def train_neural(lines, width, epochs=4):
    model = Neural(width)
    inputs, targets = windows(lines, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(256):
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


@torch.no_grad()
def neural_perplexity(model, width):
    inputs, targets = windows(held_out["en"], width)
    return math.exp(nn.functional.cross_entropy(model(inputs), targets))


# --- words and sentences (trained)
for count in (50, 200, 3000):
    lines = train["en"][:count]
    four = NGrams(lines, 4)
    losses = [loss for line in held_out["en"] for loss in four.loss(line)]
    neural = neural_perplexity(
        train_neural(lines, 3, epochs=max(4, 6000 // count)), 3
    )
    grams = perplexity(losses)
    print(f"{count:5} sentences: 4-grams {grams:.2f}, neural {neural:.2f}")

# --- the picture
from course import picture

with picture("chapter_02_perplexity", 7.2, 3.4) as figure:
    axes = figure.subplots()
    for language, name in [("en", "English"), ("zh", "中文")]:
        axes.plot(
            range(2, 8), [found[language, n] for n in range(2, 8)], "o-", label=name
        )
    axes.axhline(limit, color="0.5", ls=":")
    axes.text(
        7,
        limit - 0.02,
        "best possible, English 英文的理论最优",
        color="0.4",
        ha="right",
        va="top",
        fontsize=8,
    )
    axes.set(xlabel="n", ylabel="perplexity 困惑度", ylim=(1.6, 2.9))
    axes.legend()

# --- answer 1
short = "<s> the dog eats </s>".split()
steps = [*zip(short, short[1:], strict=False)]
print([str(p(word, previous)) for previous, word in steps])
smooth = [(pairs[step] + 1) / (before[step[0]] + 6) for step in steps]
print([round(value, 3) for value in smooth])
print(f"perplexity {math.prod(smooth) ** (-1 / 4):.2f}")

# --- end
