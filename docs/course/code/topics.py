"""Short sentences about animals, places and people: labelled text for chapters 7 and 10.

The sentences for learning and those for the test have different nouns in the same frames. Who has not
met *goat* before cannot know that it is an animal.
"""

import random

NOUNS = {
    "en": {
        "animal": ["dog", "horse", "sheep", "cat", "cow", "pig", "goat", "bird"],
        "place": [
            "church",
            "hotel",
            "museum",
            "station",
            "theatre",
            "library",
            "hospital",
            "castle",
        ],
        "person": [
            "doctor",
            "teacher",
            "lawyer",
            "farmer",
            "painter",
            "nurse",
            "soldier",
            "engineer",
        ],
    },
    "zh": {
        "animal": ["老虎", "大象", "狮子", "熊猫", "骆驼", "猴子", "山羊", "野猪"],
        "place": ["教堂", "旅馆", "公园", "车站", "剧院", "学校", "医院", "城堡"],
        "person": ["医生", "教师", "律师", "农民", "画家", "护士", "士兵", "工程师"],
    },
}
FRAMES = {
    "en": [
        "We talked about the {} for a long time .",
        "Everybody remembers the old {} .",
        "The {} was not far away .",
        "She took a picture of the {} .",
        "Nobody had seen the {} before .",
        "He wrote a book about the {} .",
    ],
    "zh": [
        "我们谈论这{}很久了。",
        "大家都记得那{}。",
        "前面不远就是{}。",
        "她给{}拍了一张照片。",
        "以前没有人见过这{}。",
        "他写了一本关于{}的书。",
    ],
}


def topics(language, part, nouns=4):
    """Return pairs of label and text: "train" has the first `nouns` of each kind, "test" the last 4."""
    chosen = slice(nouns) if part == "train" else slice(4, 8)
    found = [
        (label, frame.format(noun))
        for label, several in NOUNS[language].items()
        for noun in several[chosen]
        for frame in FRAMES[language]
    ]
    random.Random(1).shuffle(found)
    return found
