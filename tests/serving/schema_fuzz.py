"""Requests made from the OpenAPI schema, and broken ones: none may end in a fault of the server.

    python -m tests.serving.schema_fuzz --examples 100

What is checked by schemathesis: no 5xx, only documented statuses, content types and headers.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from elmokit.formats import save_model
from tests.serving.conftest import running
from tests.tiny import tiny_bundle


def main(examples: int) -> int:
    """Return the exit code of schemathesis."""
    command = Path(sys.executable).with_name("schemathesis")
    with tempfile.TemporaryDirectory() as folder:
        save_model(tiny_bundle(tokenizer="rules", vocabulary=True, softmax=True), Path(folder) / "en")
        with running("--model", f"{folder}/en") as server:
            checks = "not_a_server_error,status_code_conformance,content_type_conformance"
            return subprocess.run(
                [
                    *(command, "run", f"{server.url}/openapi.json", "--checks", checks, "--seed", "1"),
                    *("--phases", "examples,coverage,fuzzing", "--max-examples", str(examples)),
                    *("--exclude-path", "/metrics", "--generation-database", "none"),
                ],
                check=False,
            ).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=100)
    sys.exit(main(parser.parse_args().examples))
