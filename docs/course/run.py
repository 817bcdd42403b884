"""Run the chapters of the course and compare what they print with what the pages show.

    python docs/course/run.py                     # all chapters; pictures go to build/course
    python docs/course/run.py 2 6                 # some of them
    python docs/course/run.py 2 --record          # keep what it prints, and its pictures, for the pages

A chapter is a script, `code/chapter_02.py`, whose sections begin with lines like
`# --- counting words`. What a section prints is kept below the same line in
`output/chapter_02.txt`; both are shown by the pages of all languages. Numbers may differ by
5 % or 0.02, because processors round differently. A section whose name ends in "(varies)"
shows times or drawn samples, and one whose name ends in "(trained)" numbers of a small
training, which may differ by a quarter or 0.1; their words are not compared.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COURSE = Path(__file__).resolve().parent
MARK = re.compile(r"^# --- (.+)$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
SECONDS = 90  # of one core's time for a chapter


def run(chapter: int, pictures: Path) -> str:
    """Run a chapter in an empty folder and return what it prints, with the lines that begin its sections."""
    script = COURSE / "code" / f"chapter_{chapter:02}.py"
    marked = MARK.sub(
        r"print('# --- \1', flush=True)", script.read_text(encoding="utf-8")
    )
    settings = {
        "COURSE_PICTURES": str(pictures),
        "PYTHONPATH": os.pathsep.join(
            [str(script.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        ),
        "PYTHONIOENCODING": "utf-8",
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-"],
            input=marked,
            cwd=folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
    if done.returncode:
        raise SystemExit(
            f"chapter {chapter} ended with an error; run it alone: python {script}"
        )
    return done.stdout


def sections(text: str) -> dict[str, str]:
    """Return the text of each section by its name."""
    parts = MARK.split(text)
    return {
        name: body.strip("\n")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def alike(name: str, found: str, shown: str) -> bool:
    """Whether a section prints what the pages show, apart from rounding and from what may vary."""
    if name.endswith("(varies)"):
        return True
    trained = name.endswith("(trained)")
    if (
        not trained
        and NUMBER.sub("#", found).split() != NUMBER.sub("#", shown).split()
    ):
        return False
    pairs = [
        [float(number) for number in NUMBER.findall(text)] for text in (found, shown)
    ]
    share, least = (0.25, 0.1) if trained else (0.05, 0.02)
    return len(pairs[0]) == len(pairs[1]) and all(
        abs(a - b) <= max(least, share * abs(b)) for a, b in zip(*pairs, strict=True)
    )


def differences(chapter: int, found: str) -> list[str]:
    """Return the sections of a chapter that print something else than the pages show."""
    kept = COURSE / "output" / f"chapter_{chapter:02}.txt"
    now, then = sections(found), sections(kept.read_text(encoding="utf-8"))
    if list(now) != list(then):
        return [
            f"the sections are {list(now)}, in {kept.name} {list(then)}; record the chapter again"
        ]
    return [
        f"section {name!r} prints\n{now[name]}\nthe pages show\n{then[name]}"
        for name in now
        if not alike(name, now[name], then[name])
    ]


def main() -> None:
    """Run the chapters that were asked for; end with 1 if one prints something else than before."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "chapters",
        nargs="*",
        type=int,
        metavar="CHAPTER",
        help="all if none is given",
    )
    parser.add_argument(
        "--record", action="store_true", help="keep output and pictures for the pages"
    )
    given = parser.parse_args()
    chapters = sorted(
        int(path.stem[-2:]) for path in (COURSE / "code").glob("chapter_*.py")
    )
    if unknown := set(given.chapters) - set(chapters):
        parser.error(
            f"there is no chapter {min(unknown)}, only {chapters[0]} to {chapters[-1]}"
        )
    pictures = (
        COURSE / "pictures"
        if given.record
        else COURSE.parents[1] / "build" / "course"
    )
    wrong = 0
    for chapter in given.chapters or chapters:
        start, before = time.monotonic(), os.times()
        found = run(chapter, pictures)
        seconds, after = time.monotonic() - start, os.times()
        busy = (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
        if given.record:
            (COURSE / "output" / f"chapter_{chapter:02}.txt").write_text(
                found, encoding="utf-8"
            )
        problems = differences(chapter, found)
        if busy > SECONDS:
            problems.append(f"the processor was busy for more than {SECONDS} seconds")
        times = f"{seconds:5.1f} s, processor {busy:5.1f} s"
        verdict = "NOT as in the pages" if problems else "as in the pages"
        print(f"chapter {chapter:2}  {times}  {verdict}", flush=True)
        for problem in problems:
            print(problem, end="\n\n")
        wrong += bool(problems)
    print(f"The pictures are in {pictures}.")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped; run the chapter again")
