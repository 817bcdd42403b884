"""Runs the examples of downstream tasks and writes what they print into docs/guides/tasks.md.

ELMOKIT_DATA=… python benchmarks/tasks_examples.py [--en MODEL] [--zh MODEL] [--only named_entities …]
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guides" / "tasks.md"
EXAMPLES = (
    "named_entities",
    "sentiment",
    "intents",
    "financial_sentiment",
    "medical_entities",
    "fraud_messages",
    "entailment",
    "reading",
    "roles",
    "coreference",
)


def main() -> None:
    """Run each and put its output between its marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--en", default="en", help="the English model")
    parser.add_argument("--zh", default="zh", help="the Chinese model")
    parser.add_argument("--only", nargs="+", choices=EXAMPLES, default=EXAMPLES)
    arguments = parser.parse_args()
    for name in arguments.only:
        encoders = (
            [arguments.en, arguments.zh] if name in ("sentiment", "entailment", "reading") else [arguments.en]
        )
        command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *encoders]
        shown = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ).stdout
        print(shown, flush=True)
        begin, end = f"<!-- {name}: written by benchmarks/tasks_examples.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        text = f"{begin}\n```text\n{shown.strip()}\n```\n{end}"
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(pattern.sub(lambda _, text=text: text, page), encoding="utf-8")


if __name__ == "__main__":
    main()
