"""Rewards and graded rollouts from a Rollout Farm. Standard library only."""

from .client import FarmClient, Scores, iter_results
from .errors import FarmError, FarmInputError, FarmProtocolError, FarmRefused, FarmUnavailable, NoResult
from .trl import AsyncFarmReward, FarmReward

__version__ = "0.1.0"
__all__ = [
    "AsyncFarmReward",
    "FarmClient",
    "FarmError",
    "FarmInputError",
    "FarmProtocolError",
    "FarmRefused",
    "FarmReward",
    "FarmUnavailable",
    "NoResult",
    "Scores",
    "iter_results",
]
