"""The device that computes."""

import torch

from elmokit.errors import ConfigError


def find_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is the fastest there is.

    Raises:
        ConfigError: There is no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used here ({reason}); use 'cpu' or 'auto'") from error
    return device
