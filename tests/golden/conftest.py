# This script runs with version 0.1 only.
collect_ignore = ["make.py"]
