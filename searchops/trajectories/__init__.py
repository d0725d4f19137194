"""Search logs of other systems, read as trajectories and as runs that the same measures apply to.

What a log does not say is not made up: a ReAct transcript has no token counts, no candidates and no
extraction, so those measures have no value. Source of the format: Reflexion's HotpotQA logs (Thought,
Action Search[..] | Lookup[..] | Finish[..], Observation; five trials over 100 questions).
"""

from searchops.trajectories.figures import trajectory_values
from searchops.trajectories.react import OUTCOMES, Step, Trajectory, read_react
from searchops.trajectories.runs import react_run

__all__ = ["OUTCOMES", "Step", "Trajectory", "react_run", "read_react", "trajectory_values"]
