"""`python -m elmokit.cli`, for torchrun."""

from elmokit.cli import main

main(prog_name="elmokit")
