"""The rule tokenizer for scripts that put blanks between words.

A text is cut at white space first; each piece between blanks is then cut by one pattern whose alternatives
are tried in order at each place, and at last by the clitics of the language. A piece is looked at by itself,
without its neighbours, so results can be kept: most pieces of a text are old acquaintances.

Every alternative is possessive or bounded, so that the time stays linear whatever is fed in.
"""

from functools import partial
from typing import Final

import regex

from elmokit.text.languages import abbreviations
from elmokit.text.tokens import Token

# What str.isspace says, which is a little more than the \s of regex.
SPACE: Final = r"\s\x1c-\x1f"
# Characters that are words by themselves; the last are marks of length and voice, in no script of their own.
CJK: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u30fc\uff70\uff9e\uff9f"

_compile = partial(regex.compile, flags=regex.VERBOSE | regex.VERSION1)

_CHUNK = regex.compile(rf"[^{SPACE}]++", regex.VERSION1)
# Letters with their marks, digits, joiners and soft hyphens.
_W = rf"[\p{{L}}\p{{M}}\p{{N}}_\u00ad\u200c\u200d--[{CJK}]]"
_APOSTROPHE = "['’]"

_PATTERN = r"""
    # URLs, with brackets only in pairs and without the punctuation of the sentence
    (?: (?:https?|ftp|file)://  | www\. )
        (?: [^\s<>"“”()\[\]{}] | \([^\s<>"()]*+\) )* (?<! [.,;:!?'’…] )
    # e-mail addresses
    | [\w.+%-]{1,64}+ @ \w[\w-]{0,62}+ (?: \.\w[\w-]{0,62}+ ){0,8}+
    # host names and files
    | (?<![\w.]) \w[\w-]{0,62}+ (?: \.\w[\w-]{0,62}+ ){0,8} \.
      (?: com|org|net|edu|gov|mil|info|biz|co\.uk|io|de|fr|tv|html?|php|pdf|docx?|xlsx?|pptx?|txt|jpe?g|png|gif|zip|exe )
      (?![\w@]) (?: /[^\s<>"“”()\[\]{}]* (?<! [.,;:!?'’…] ) )?
    # mentions and hashtags
    | (?<![\w&]) [@\#] [\p{L}_]\w*+
    # emoticons
    | [<>]?[:;=][-'’^o]?(?: [)(\]\[}{|\\*]++ | [DPpOoSs3/]++(?!\w) ) (?![/\w])
    | (?<!\w)(?: <3++ | [xX]D++ | \^[_.]?\^ | -[_.]++- | [oO][_.][oO] | T[_.]T ) (?!\w)
    # emoji, with their joiners, skins and flags
    | \p{RI}\p{RI}
    | [\d\#*]\ufe0f?\u20e3
    | [\p{Extended_Pictographic}--[©®™\d\#*]] [\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*+
      (?: \u200d\p{Extended_Pictographic}[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]*+ )*+ [\U000e0020-\U000e007f]*+
    # runs: dots, dashes, stops, and lines drawn with signs
    | \.{2,}+ | …++ | [-‐‑–—]{2,}+ | [!?]++ | ([=_*~+\#^|<>,`])\1++ | ''
    # numbers: times, dates, telephones, decimals and thousands
    | CLITIC_ALONE
    | (?<![\p{L}\d]) \d{1,4}[/.]\d{1,2}[/.]\d{2,4} (?![\d\p{L}])
    | (?<![\p{L}\d]) \d{1,2}/\d{1,2} (?![\d\p{L}])
    | (?<![\p{L}\d-]) (?:\d{1,4}-)?\d{3}-\d{4} (?![\d\p{L}-])
    | (?<![\p{L}\d]) \d++(?::\d\d)++ UNIT
    | (?<![\p{L}\d]) (?: \d++ (?:[.,]\d++)*+ | (?<!\d)[.]\d++ ) UNIT
    # abbreviations
    | (?<!\p{L}) (?: \p{L}\. ){2,}+
    | (?<!\p{L}) \p{Lu}\. (?=$|[^\p{L}\p{N}.])
    | (?<!\p{L}) (?i: ABBREVIATIONS )\. (?![\p{L}\p{N}.])
    # words
    | (?<!W) \p{Lu}++&\p{Lu}++ (?!W)
    | WORD
    | [CJK]\p{M}*+
    | [^\s]\p{M}*+
"""
