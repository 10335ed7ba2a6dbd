"""Robots other than the six: swimming chains of hinges of any length, with observations of any width.

`benchmarks.chain:links_8_wide_2` is a chain of 8 links (p = 8) that also observes `cinert` twice.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

from ars.tasks.locomotion import Locomotion, Slice


def name_of(links: int, wide: int = 0) -> str:
    return f"benchmarks.chain:links_{links}_wide_{wide}"


def __getattr__(name: str) -> Locomotion:
    match = re.fullmatch(r"links_(\d+)_wide_(\d+)", name)
    if not match:
        raise AttributeError(name)
    return robot(int(match[1]), int(match[2]))


@cache
def robot(links: int, wide: int) -> Locomotion:
    return Locomotion(
        name=f"chain of {links}",
        xml=str(_write(links)),
        frame_skip=4,
        observation=(Slice("qpos", 2), Slice("qvel"), *[Slice("cinert")] * wide),
        ctrl_weight=1e-4,
        qpos_noise=0.1,
        qvel_noise=0.1,
    )


def _write(links: int) -> Path:
    """The model in a file that has the same path, and the same content, in every process."""
    path = Path(tempfile.gettempdir()) / f"ars-benchmark-chain-{links}.xml"
    if not path.exists():
        scratch = path.with_suffix(f".{id(path)}")
        scratch.write_text(_mjcf(links))
        scratch.replace(path)
    return path


def _mjcf(links: int) -> str:
    body = ""
    for link in range(links, -1, -1):
        slides = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>' if link == 0 else ""
        position = "0 0 0" if link == 0 else "-1 0 0"
        body = (
            f'<body pos="{position}">{slides}<joint name="hinge{link}" type="hinge" axis="0 0 1"/>'
            f'<geom type="capsule" size="0.1" fromto="0 0 0 -1 0 0" density="1000"/>{body}</body>'
        )
    motors = "".join(f'<motor joint="hinge{link}" gear="150" ctrlrange="-1 1"/>' for link in range(1, links + 1))
    return (
        '<mujoco><option timestep="0.01" density="4000" viscosity="0.1" integrator="implicitfast"/>'
        '<default><joint damping="1" armature="0.1"/><geom contype="0" conaffinity="0"/>'
        '<motor ctrllimited="true"/></default>'
        f"<worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>"
    )
