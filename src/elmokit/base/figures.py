"""Pictures: the one way to draw and write them. Needs matplotlib.

Characters that matplotlib's own font lacks, such as Chinese ones, are taken from a font of the system or from
the small one that comes with elmokit.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from elmokit.base.locks import output_file
from elmokit.errors import ConfigError, MissingExtra

logger = logging.getLogger(__name__)

# Colours that everybody can tell apart, by Okabe and Ito.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

_ENDINGS = (".png", ".svg", ".pdf", ".jpg", ".webp")
_BUNDLED = Path(__file__).parents[1] / "fonts" / "elmokit-sans-cjk.otf"
# Linux, Windows, macOS.
_CJK_FONTS = (
    "Noto Sans CJK", "Noto Sans SC", "Source Han Sans", "WenQuanYi",
    "Microsoft YaHei", "SimHei", "PingFang", "Hiragino Sans GB", "STHeiti",
)  # fmt: skip
_INSTALL = "apt install fonts-noto-cjk, brew install font-noto-sans-cjk, or https://fonts.google.com/noto"


@contextmanager
def drawing(path: Path, *, width: float, height: float, dpi: int = 150) -> Iterator[Any]:
    """Yield an empty figure that needs no screen; at the end of the block it is written to `path`.

    Args:
        path: The picture; its ending determines the format.
        width: In inches.
        height: In inches.
        dpi: Points of an inch.

    Raises:
        MissingExtra: matplotlib is not installed.
        ConfigError: The ending of `path` names no format.
        DataError: `path` cannot be written.
        BusyError: another process is writing it.
    """
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
    with rc_context({"font.family": list(fonts()), **style}):
        figure: Any = Figure(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
        # Chinese fonts often have one weight only, which matplotlib would report for each text.
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        yield figure
        with output_file(path) as draft, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure.savefig(draft, dpi=dpi, format=path.suffix[1:].lower())
    missing = [str(warning.message) for warning in caught if "missing from" in str(warning.message)]
    if missing:
        logger.warning(
            "%d characters of %s are in no font here and are drawn as boxes; install one: %s",
            *(len(set(missing)), path.name, _INSTALL),
        )


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before the work for it is done.

    Raises:
        MissingExtra: matplotlib is not installed.
        ConfigError: The ending names no format, or the path is a folder or in one that does not exist.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise ConfigError(f"{path} is no name for a picture; it has to end in {', '.join(_ENDINGS)}")
    if path.is_dir() or not path.parent.is_dir():
        found = f"{path} is a folder" if path.is_dir() else f"the folder {path.parent} does not exist"
        raise ConfigError(f"{found}; choose another name for the picture")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "a picture") from error


def bold_if_there(text: str) -> str:
    """Return the weight of a heading: fonts for Chinese often have no bold letters, and a mixture is ugly.

    >>> bold_if_there("bank"), bold_if_there("苹果: 3 uses")
    ('bold', 'normal')
    """
    return "normal" if any(east_asian_width(character) in "WF" for character in text) else "bold"


@cache
def fonts() -> tuple[str, ...]:
    """Return the families to write with: matplotlib's own, then the system's for Chinese, then ours."""
    from matplotlib.font_manager import fontManager

    fontManager.addfont(_BUNDLED)
    names = sorted({font.name for font in fontManager.ttflist})
    preferred = [name for start in _CJK_FONTS for name in names if name.startswith(start)]
    # Noto has a family for each region; Chinese text looks best in that of Simplified Chinese.
    preferred.sort(key=lambda name: not name.endswith(" SC"))
    return ("DejaVu Sans", *preferred[:1], "elmokit Sans CJK")
