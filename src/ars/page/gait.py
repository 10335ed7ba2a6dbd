"""A film and its foot contacts as data for a page."""

import base64
from typing import Any

from ars.errors import ArsError
from ars.policy import LinearPolicy
from ars.video.film import FrameWriter, Trace, film


def gait(policy: LinearPolicy, task: str | None, *, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Frames, when each foot is down, and what the episode paid; {"why_not": …} where no film can be made."""
    frames = FrameWriter()
    try:
        rollout, trace = film(policy, task, [frames], seconds=seconds, seed=seed)
    except ArsError as error:
        return {"why_not": str(error)}
    last = trace.moments[-1]
    return {
        "frames": [base64.b64encode(frame).decode() for frame in frames.frames],
        "frame_seconds": frames.seconds,
        "seconds": last.time,
        "seed": seed,
        "steps": rollout.steps,
        "reward": rollout.reward,
        "speed": _mean_speed(trace),
        "speeds": _speeds(trace),
        "feet": [{"name": foot, "down": stances(trace, i)} for i, foot in enumerate(trace.feet)],
    }


def stances(trace: Trace, foot: int) -> list[tuple[float, float]]:
    """The stretches of time, [from, to), in which a foot touches the ground; a moment stands for the dt after it."""
    found: list[tuple[float, float]] = []
    for moment in trace.moments[:-1]:  # the last one has no time after it
        if moment.contacts[foot]:
            start, end = moment.step * trace.dt, (moment.step + 1) * trace.dt
            if found and found[-1][1] == start:
                start = found.pop()[0]
            found.append((start, end))
    return found


def _mean_speed(trace: Trace) -> float | None:
    """Metres per second, over the second half, when the gait has settled."""
    speeds = [moment.speed for moment in trace.moments[len(trace.moments) // 2 :] if moment.speed is not None]
    return sum(speeds) / len(speeds) if speeds else None


def _speeds(trace: Trace, most: int = 300) -> list[float]:
    """The speed over time, at evenly spaced moments from the first to the last; empty where it is not known."""
    moments = trace.moments
    if len(moments) < 2 or any(moment.speed is None for moment in moments[1:]):
        return []
    count = min(most, len(moments))
    chosen = (moments[round(i * (len(moments) - 1) / (count - 1))] for i in range(count))
    return [round(moment.speed or 0.0, 3) for moment in chosen]
