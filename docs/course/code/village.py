"""A village that talks about itself, in English and in Chinese: the small text of the course.

A few rules make as many sentences as you like. They hold what a language model has to
learn: verbs that agree with their subjects, pronouns, measure words, and words with two
meanings (*bank*, 花). Because all the rules are known, one can ask what a model has found.
"""

import random

ANIMALS = {
    "dog": ("dogs", "狗", "条"),
    "cat": ("cats", "猫", "只"),
    "horse": ("horses", "马", "匹"),
    "cow": ("cows", "牛", "头"),
    "duck": ("ducks", "鸭子", "只"),
    "snake": ("snakes", "蛇", "条"),
}
ACTIONS = {
    "sleep": "睡觉",
    "eat": "吃东西",
    "drink": "喝水",
    "play": "玩",
    "run": "跑",
    "wait": "等人",
}
PLACES = {
    "river": ("rivers", "河"),
    "house": ("houses", "房子"),
    "tree": ("trees", "树"),
    "field": ("fields", "田"),
}
LOOKS = {"big": "大", "small": "小", "old": "老", "black": "黑", "white": "白"}
PEOPLE = {
    "anna": ("her", "she", "安娜", "她"),
    "mary": ("her", "she", "玛丽", "她"),
    "tom": ("his", "he", "汤姆", "他"),
    "paul": ("his", "he", "保罗", "他"),
}
THINGS = {
    "hat": ("帽子", "顶"),
    "book": ("书", "本"),
    "boat": ("船", "条"),
    "coat": ("毛衣", "件"),
    "pen": ("笔", "支"),
}
TIMES = {"in the morning": "早上", "at noon": "中午", "in the evening": "晚上"}


def animals(rng):
    """The dogs near the old river sleep. The verb agrees with the first noun, not with the second."""
    (one, (many, zh, measure)), (verb, zh_verb) = (
        rng.choice([*ANIMALS.items()]),
        rng.choice([*ACTIONS.items()]),
    )
    (place, (places, zh_place)), (look, zh_look) = (
        rng.choice([*PLACES.items()]),
        rng.choice([*LOOKS.items()]),
    )
    plural, other = rng.random() < 0.5, rng.random() < 0.5
    subject, near = many if plural else one, places if other else place
    english = f"the {subject} near the {look} {near} {verb}{'' if plural else 's'}"
    return english, f"{zh_place}边的一{measure}{zh_look}{zh}在{zh_verb}"


def person(rng):
    """Anna looks for her black hat because she needs it. The pronouns agree with the name."""
    name, (own, she, zh_name, zh_she) = rng.choice([*PEOPLE.items()])
    thing, (zh_thing, measure) = rng.choice([*THINGS.items()])
    look, zh_look = rng.choice([*LOOKS.items()][:2])
    verb, zh_verb = rng.choice(
        [("looks for", "在找"), ("sells", "要卖"), ("buys back", "买回了")]
    )
    english = f"{name} {verb} {own} {look} {thing} because {she} needs {rng.choice(['it', 'money'])}"
    return english, f"{zh_name}{zh_verb}{zh_she}的一{measure}{zh_look}{zh_thing}"


def water(rng):
    """The bank of a river; 花 is a flower."""
    who, zh_who = rng.choice(
        [("fisherman", "渔夫"), ("girl", "女孩"), ("boy", "男孩")]
    )
    verb, zh_verb = rng.choice([("sits", "坐"), ("stands", "站"), ("walks", "走")])
    look, zh_where = rng.choice(
        [("green", "水里"), ("muddy", "桥边"), ("quiet", "岸上")]
    )
    what, zh_what = rng.choice([("fish", "红"), ("boats", "白"), ("ducks", "黄")])
    english = (
        f"the {who} {verb} on the {look} bank and watches the {what} in the water"
    )
    return english, f"{zh_who}{zh_verb}在河边看{zh_where}的{zh_what}花"


def money(rng):
    """The bank that has money; 花 is to spend."""
    who, zh_who = rng.choice(
        [("farmer", "农夫"), ("merchant", "商人"), ("doctor", "医生")]
    )
    verb, zh_verb = rng.choice([("borrows", "借"), ("takes", "取"), ("gets", "领")])
    look, zh_look = rng.choice([("big", "大"), ("new", "新"), ("old", "老")])
    what, zh_what = rng.choice([("house", "房子"), ("field", "田"), ("boat", "船")])
    english = f"the {who} {verb} money from the {look} bank and pays for a {what}"
    return (
        english,
        f"{zh_who}从{zh_look}银行{zh_verb}了钱，花{rng.choice('三五八')}百元买了{zh_what}",
    )


def sentences(count, *, seed=1):
    """Return `count` pairs of an English sentence, its words separated by blanks, and a Chinese one."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        english, chinese = rng.choice([animals, person, water, money])(rng)
        when, zh_when = rng.choice([*TIMES.items()])
        if rng.random() < 0.3:
            english, chinese = f"{when} {english}", f"{zh_when}{chinese}"
        found.append((f"{english} .", f"{chinese}。"))
    return found


if __name__ == "__main__":
    for english, chinese in sentences(8):
        print(english, chinese, sep="\n")
