"""A film and its foot contacts as data for a page."""

import base64
from collections.abc import Callable
from typing import Any

from ars.errors import ArsError
from ars.policy import LinearPolicy
from ars.video.film import FrameWriter, Trace, film


def film_gait(
    policy: LinearPolicy, task: str | None, *, seconds: float, progress: Callable[[float], None] = lambda _: None
) -> dict[str, Any]:
    """Frames, speeds, stances and a summary of the first episode of `ars evaluate` with seed 0; {"why_not": …} if no
    film can be made."""
    writer = FrameWriter()
    try:
        rollout, trace = film(policy, task, [writer], seconds=seconds, progress=progress)
    except ArsError as error:
        return {"why_not": str(error)}
    summary = f"reward {rollout.reward:z.1f} in {rollout.steps} steps"
    speed = _mean_speed(trace)
    if speed is not None:
        summary += f", {speed:z.2f} m/s in the second half"
    if trace.commanded is not None:
        summary += f", {trace.commanded:g} m/s commanded"
    length = trace.snapshots[-1].time
    feet = [(foot, stances(trace, i)) for i, foot in enumerate(trace.feet)]
    return {
        "frames": [base64.b64encode(frame).decode() for frame in writer.frames],
        "frame_seconds": writer.seconds,
        "seconds": length,
        "summary": summary,
        "speeds": _speeds(trace),
        "commanded": trace.commanded,
        "feet": [{"name": foot, "down": down, "share": _share(down, length)} for foot, down in feet],
    }


def stances(trace: Trace, foot: int) -> list[tuple[float, float]]:
    """The intervals [from, to) in which a foot touches the ground; a snapshot applies to the dt after it."""
    intervals: list[tuple[float, float]] = []
    for snapshot in trace.snapshots[:-1]:  # no time follows the last one
        if snapshot.contacts[foot]:
            start, end = snapshot.step * trace.dt, (snapshot.step + 1) * trace.dt
            if intervals and intervals[-1][1] == start:
                start = intervals.pop()[0]
            intervals.append((start, end))
    return intervals


def _share(down: list[tuple[float, float]], length: float) -> str:
    """The share of time for which a foot is on the ground."""
    return f"{sum(end - start for start, end in down) / (length or 1.0):.0%}"


def _mean_speed(trace: Trace) -> float | None:
    """Metres per second, over the second half, when the gait has settled."""
    speeds = [one.speed for one in trace.snapshots[len(trace.snapshots) // 2 :] if one.speed is not None]
    return sum(speeds) / len(speeds) if speeds else None


def _speeds(trace: Trace, most: int = 300) -> list[float]:
    """The speed at evenly spaced times from the first to the last; empty if it is unknown."""
    snapshots = trace.snapshots
    if len(snapshots) < 2 or any(one.speed is None for one in snapshots[1:]):
        return []
    count = min(most, len(snapshots))
    chosen = (snapshots[round(i * (len(snapshots) - 1) / (count - 1))] for i in range(count))
    return [round(one.speed or 0.0, 3) for one in chosen]
