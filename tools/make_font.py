"""Make the small font for pictures with Chinese, src/elmokit/fonts/elmokit-sans-cjk.otf, from Noto Sans CJK.

    pip install fonttools && apt install fonts-noto-cjk
    python tools/make_font.py /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc

It keeps the commonest characters of the vocabulary of the model `zh`, kana, and full-width punctuation. The
licence of the original, the SIL Open Font License, allows this under another name; it stands beside the font.
"""

import argparse
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTCollection

PACKAGE = Path(__file__).parents[1] / "src" / "elmokit"
NAME = "elmokit Sans CJK"
CHARACTERS = 4000  # of Chinese: 99.9 % of running text


def main() -> None:
    """Choose the characters, keep their glyphs, change the name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", type=Path)
    fonts = TTCollection(parser.parse_args().collection).fonts
    font = next(one for one in fonts if one["name"].getDebugName(1) == "Noto Sans CJK SC")
    words = (PACKAGE / "models" / "zh" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    common = [word for word in words if len(word) == 1 and "一" <= word <= "鿿"][:CHARACTERS]
    others = [chr(code) for start, end in ((0x3000, 0x3100), (0xFF00, 0xFF70)) for code in range(start, end)]
    options = Options(layout_features=[], hinting=False, name_IDs=[0, 1, 2, 4, 6, 13, 14])
    subsetter = Subsetter(options)
    subsetter.populate(text="".join([*common, *others, "“”‘’…—·"]))
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 6):
            record.string = NAME.replace(" ", "") if record.nameID == 6 else NAME
    cff = font["CFF "].cff
    cff.fontNames = [NAME.replace(" ", "")]
    cff.topDictIndex[0].FullName = cff.topDictIndex[0].FamilyName = NAME
    font.save(PACKAGE / "fonts" / "elmokit-sans-cjk.otf")


if __name__ == "__main__":
    main()
