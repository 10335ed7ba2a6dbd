"""The six robots: `-v1` undoes each difference between the paper's definition and Gymnasium's `-v5`."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv

from ars.errors import TaskError
from ars.tasks import locomotion, make
from ars.tasks.gymnasium import make_env

ROBOTS = ("Swimmer", "Hopper", "HalfCheetah", "Walker2d", "Ant", "Humanoid")


def robot(name: str) -> Any:
    """The bare environment, after a reset."""
    env = make_env(name).unwrapped
    env.reset(seed=0)
    return env


def mass(model: Any, *bodies: str) -> list[float]:
    return [float(model.body(body).mass[0]) for body in bodies]


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n", "p"),
    [
        ("Swimmer-v1", 8, 2), ("Swimmer-v5", 8, 2),
        ("Hopper-v1", 11, 3), ("Hopper-v5", 11, 3),
        ("HalfCheetah-v1", 17, 6), ("HalfCheetah-v5", 17, 6),
        ("Walker2d-v1", 17, 6), ("Walker2d-v5", 17, 6),
        ("Ant-v1", 111, 8), ("Ant-v5", 105, 8),
        ("Humanoid-v1", 376, 17), ("Humanoid-v5", 348, 17),
    ],
)  # fmt: skip
def test_sizes(name: str, n: int, p: int) -> None:
    """Policies published for v1 have 111 and 376 columns for Ant and Humanoid."""
    env = robot(name)
    obs, _ = env.reset(seed=1)
    assert obs.shape == env.observation_space.shape == (n,)
    assert env.action_space.shape == (p,)
    assert env.step(np.zeros(p))[0].shape == (n,)


@pytest.mark.parametrize("version", ["v1", "v5"])
@pytest.mark.parametrize(
    ("name", "bonus"),
    [("Swimmer", 0.0), ("Hopper", 1.0), ("HalfCheetah", 0.0), ("Walker2d", 1.0), ("Ant", 1.0), ("Humanoid", 5.0)],
)
def test_survival_bonus(name: str, bonus: float, version: str) -> None:
    """What `shift` takes off is what the environment pays (section 4.3: ARS would learn to stand still)."""
    assert locomotion.TASKS[f"{name}-{version}"].survival_bonus == bonus
    env = robot(f"{name}-{version}")
    info = env.step(np.zeros(env.action_space.shape))[4]
    assert info.get("reward_survive", 0.0) == bonus


@pytest.mark.parametrize("name", list(locomotion.TASKS))
def test_horizon_is_1000(name: str) -> None:
    assert locomotion.TASKS[name].H == 1000
    assert make_env(name).get_wrapper_attr("_max_episode_steps") == 1000


@pytest.mark.parametrize("name", list(locomotion.TASKS))
def test_descriptions_are_json(name: str) -> None:
    """They are saved with runs and policies, and compared when a run is resumed."""
    described = locomotion.describe(locomotion.TASKS[name])
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["name"] == name


# -- masses ----------------------------------------------------------------------------------------------------------


def test_hopper_masses() -> None:
    """Capsules count as cylinders of length 2h + r, as before MuJoCo 2.1.1."""
    model = locomotion.load_model(locomotion.TASKS["Hopper-v1"])
    assert mass(model, "torso", "thigh", "leg", "foot") == pytest.approx(
        [3.534292, 3.926991, 2.714336, 5.089380], abs=1e-6
    )


def test_walker2d_masses() -> None:
    assert locomotion.load_model(locomotion.TASKS["Walker2d-v1"]).body_mass.sum() == pytest.approx(22.698007, abs=1e-6)


def test_ant_masses() -> None:
    model = locomotion.load_model(locomotion.TASKS["Ant-v1"])
    assert mass(model, "torso") == pytest.approx([0.327249], abs=1e-6)
    assert model.body_mass.sum() == pytest.approx(0.878710, abs=1e-6)


def test_half_cheetah_masses() -> None:
    """Its settotalmass of 14 holds after the capsule rule."""
    model = locomotion.load_model(locomotion.TASKS["HalfCheetah-v1"])
    assert mass(model, "torso") == pytest.approx([6.360313], abs=1e-6)
    assert model.body_mass.sum() == pytest.approx(14.0, abs=1e-9)


def test_humanoid_masses() -> None:
    model = locomotion.load_model(locomotion.TASKS["Humanoid-v1"])
    assert mass(model, "torso", "pelvis", "right_thigh", "left_thigh") == pytest.approx(
        [8.322079, 5.852787, 4.525556, 4.525556], abs=1e-6
    )
    assert model.body_mass.sum() == pytest.approx(39.645817, abs=1e-6)


def test_swimmer_keeps_todays_masses() -> None:
    """The numbered deviation."""
    v1, v5 = (locomotion.load_model(locomotion.TASKS[f"Swimmer-{version}"]) for version in ("v1", "v5"))
    assert v1.body_mass.tolist() == v5.body_mass.tolist()


def test_inertia_of_a_capsule_by_hand() -> None:
    """Hopper's torso: r = 0.05, h = 0.2, density 1000: a cylinder of length L = 0.45."""
    model = locomotion.load_model(locomotion.TASKS["Hopper-v1"])
    r, L = 0.05, 0.45
    m = 1000 * math.pi * r**2 * L
    across, along = m * (3 * r**2 + L**2) / 12, m * r**2 / 2
    assert mass(model, "torso") == pytest.approx([m], rel=1e-12)
    assert sorted(model.body("torso").inertia) == pytest.approx(sorted([across, across, along]), rel=1e-9)


def test_derived_constants_are_recomputed() -> None:
    """Constraint solving depends on body_invweight0 and dof_M0: stale ones would be another robot."""
    model = locomotion.load_model(locomotion.TASKS["Hopper-v1"])
    before = model.body_invweight0.copy(), model.dof_invweight0.copy(), model.body_subtreemass.copy()
    mujoco.mj_setConst(model, mujoco.MjData(model))
    for saved, name in zip(before, ("body_invweight0", "dof_invweight0", "body_subtreemass"), strict=True):
        assert saved.tolist() == getattr(model, name).tolist()
    assert model.body_subtreemass[0] == pytest.approx(model.body_mass.sum())


@pytest.mark.parametrize("name", ROBOTS)
def test_collision_geometry_stays(name: str) -> None:
    """Only mass and inertia follow the cylinder rule: the geoms are still capsules of the same size and place."""
    v1, v5 = (locomotion.load_model(locomotion.TASKS[f"{name}-{version}"]) for version in ("v1", "v5"))
    for field in (
        "geom_type",
        "geom_size",
        "geom_pos",
        "geom_quat",
        "body_pos",
        "jnt_axis",
        "actuator_gear",
        "dof_armature",
    ):
        assert getattr(v1, field).tolist() == getattr(v5, field).tolist(), field


@pytest.mark.parametrize("name", ROBOTS)
def test_v5_is_gymnasiums_own_model(name: str) -> None:
    task = locomotion.TASKS[f"{name}-v5"]
    ours, theirs = locomotion.load_model(task), robot(f"{name}-v5").model
    for field in ("body_mass", "body_inertia", "geom_friction", "jnt_range", "actuator_ctrlrange"):
        assert getattr(ours, field).tolist() == getattr(theirs, field).tolist()


@pytest.mark.parametrize("name", ROBOTS)
def test_the_environment_uses_the_described_model(name: str) -> None:
    """The compiled loop and the environment must simulate the same robot."""
    ours, theirs = locomotion.load_model(locomotion.TASKS[f"{name}-v1"]), robot(f"{name}-v1").model
    for field in ("body_mass", "body_inertia", "geom_friction", "jnt_range", "dof_invweight0"):
        assert getattr(ours, field).tolist() == getattr(theirs, field).tolist()


# -- other differences of the model ----------------------------------------------------------------------------------


def test_walker2d_frictions() -> None:
    """v1: 0.9 right, 1.9 left; v5: 1.9 both."""
    frictions = {
        version: [
            float(locomotion.load_model(locomotion.TASKS[f"Walker2d-{version}"]).geom(f"foot{side}_geom").friction[0])
            for side in ("", "_left")
        ]
        for version in ("v1", "v5")
    }
    assert frictions == {"v1": [0.9, 1.9], "v5": [1.9, 1.9]}


def test_humanoids_left_hip_y() -> None:
    """v1: −120° to 20°, as the right one; v5: −110°."""
    for version, low in (("v1", -120), ("v5", -110)):
        model = locomotion.load_model(locomotion.TASKS[f"Humanoid-{version}"])
        assert np.degrees(model.joint("left_hip_y").range) == pytest.approx([low, 20])
        assert np.degrees(model.joint("right_hip_y").range) == pytest.approx([-110, 20])


# -- observations ----------------------------------------------------------------------------------------------------


def actions_of(env: Any, count: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.uniform(-1.0, 1.0, (count, *env.action_space.shape))


def columns(*ranges: tuple[int, int]) -> list[int]:
    return [i for start, size in ranges for i in range(start, start + size)]


@pytest.mark.parametrize(
    ("name", "base", "added"),
    [
        # qpos[2:] 13, qvel 14, then cfrc_ext 14 × 6: the world's are the first 6
        ("Ant-v1", AntEnv, columns((27, 6))),
        # qpos[2:] 22, qvel 23, cinert 14 × 10, cvel 14 × 6, qfrc_actuator 23, cfrc_ext 14 × 6
        ("Humanoid-v1", HumanoidEnv, columns((45, 10), (185, 6), (269, 6), (292, 6))),
    ],
)
def test_v1_layout_is_v5s_with_constant_zeros(name: str, base: Any, added: list[int]) -> None:
    """The columns that v5 leaves out are zero in every state, and the rest is v5's observation of the same data."""
    env = robot(name)
    assert len(added) == {"Ant-v1": 6, "Humanoid-v1": 28}[name]
    contacts = 0.0
    for action in actions_of(env, 40):
        obs = env.step(action)[0]
        assert not obs[added].any()
        assert np.array_equal(np.delete(obs, added), base._get_obs(env))
        contacts = max(contacts, float(np.abs(env.data.cfrc_ext).max()))
    assert contacts > 0.0  # the feet did touch the floor, so contact forces are computed


def test_ants_observed_contact_forces_are_clipped() -> None:
    """To ±1, as in v1 and v5."""
    env = robot("Ant-v1")
    for action in actions_of(env, 60):
        obs = env.step(action)[0]
    assert np.abs(obs[27:]).max() <= 1.0


# -- rewards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1", "v5"])
@pytest.mark.parametrize(
    ("name", "index", "value"), [("Hopper", 1, 0.3), ("Walker2d", 1, 0.3), ("Ant", 2, 3.0), ("Humanoid", 2, 0.5)]
)
def test_bonus_on_the_step_that_falls(name: str, index: int, value: float, version: str) -> None:
    """Paid in v1, not in v5."""
    env = robot(f"{name}-{version}")
    qpos = env.data.qpos.copy()
    qpos[index] = value
    env.set_state(qpos, env.data.qvel)
    _, reward, terminated, _, info = env.step(np.zeros(env.action_space.shape))
    assert terminated
    bonus = locomotion.TASKS[f"{name}-v1"].survival_bonus if version == "v1" else 0.0
    assert info["reward_survive"] == bonus
    parts = [info[part] for part in ("reward_forward", "reward_ctrl", "reward_contact") if part in info]
    assert reward == pytest.approx(sum(parts) + bonus, abs=1e-9)


def test_humanoids_control_cost() -> None:
    """v1: of the controls clamped to ±0.4, so at most 0.1 · 17 · 0.16; v5: of the actions as they are."""
    for version, expected in (("v1", 0.1 * 17 * 0.4**2), ("v5", 0.1 * 17 * 100.0)):
        env = robot(f"Humanoid-{version}")
        assert env.model.actuator_ctrlrange.tolist() == [[-0.4, 0.4]] * 17
        info = env.step(np.full(17, -10.0))[4]
        assert info["reward_ctrl"] == pytest.approx(-expected)
        small = env.step(np.full(17, 0.1))[4]
        assert small["reward_ctrl"] == pytest.approx(-0.1 * 17 * 0.01)


def test_other_control_costs_are_of_the_unclamped_actions() -> None:
    """In v1 too: Gym computed them from the action itself. Clipping before would hide the price of large gains."""
    for name, weight in (("Swimmer", 1e-4), ("Hopper", 1e-3), ("HalfCheetah", 0.1), ("Walker2d", 1e-3), ("Ant", 0.5)):
        env = robot(f"{name}-v1")
        p = env.action_space.shape[0]
        assert env.step(np.full(p, 10.0))[4]["reward_ctrl"] == pytest.approx(-weight * p * 100.0)


def test_ants_progress_is_its_centre_of_masss() -> None:
    """v1: x of the torso's subtree; computed here from all bodies."""

    def center(env: Any) -> float:
        return float(np.average(env.data.xipos[1:, 0], weights=env.model.body_mass[1:]))

    env = robot("Ant-v1")
    torso_differs = False
    for action in actions_of(env, 30):
        before, x_before = center(env), env.data.body("torso").xpos[0].copy()
        _, reward, _, _, info = env.step(action)
        velocity = (center(env) - before) / env.dt
        assert info["reward_forward"] == pytest.approx(velocity, abs=1e-9)
        contact = 5e-4 * np.square(np.clip(env.data.cfrc_ext, -1, 1)).sum()
        assert reward == pytest.approx(velocity + 1.0 - 0.5 * np.square(action).sum() - contact, abs=1e-9)
        torso_differs |= abs((env.data.body("torso").xpos[0] - x_before) / env.dt - velocity) > 1e-3
    assert torso_differs  # so this test can tell the two definitions apart


def test_v5s_ant_moves_by_its_torso() -> None:
    env = robot("Ant-v5")
    x_before = env.data.body("torso").xpos[0].copy()
    info = env.step(np.full(8, 0.5))[4]
    assert info["reward_forward"] == pytest.approx((env.data.body("torso").xpos[0] - x_before) / env.dt)


# -- divergence ------------------------------------------------------------------------------------------------------


def test_divergence_is_seen_although_the_state_is_finite() -> None:
    """MuJoCo resets silently; only its warning counter tells."""
    env = robot("Hopper-v1")
    env.step(np.zeros(3))
    assert not locomotion.diverged(env.data)
    env.data.qvel[:] = 1e30
    obs = env.step(np.zeros(3))[0]
    assert np.isfinite(obs).all()
    assert locomotion.diverged(env.data)
    env.reset(seed=0)
    assert not locomotion.diverged(env.data)


@pytest.mark.parametrize("name", ["HalfCheetah-v1", "HalfCheetah-v5", "small_envs:diverging_swimmer"])
def test_no_log_file_is_left(name: str, tmp_path: Path) -> None:
    """Neither by HalfCheetah's file (settotalmass) nor by a diverging simulation, in the user's folder."""
    script = f"""
import warnings
warnings.simplefilter("error")
import numpy as np
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.tasks.gymnasium import GymnasiumTask
from small_envs import Diverging
task = GymnasiumTask({name!r})
if ":" not in {name!r}:
    task._env = Diverging(task._env)
policy = LinearPolicy(np.zeros((task.p, task.n)), np.zeros(task.n), np.ones(task.n))
rollout = task.rollout(policy, Key(0, Stream.TEST, 0, 0), H=6, shift=0.0, gather=False)
assert not rollout.finite
"""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({tests!r})\n{script}"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_warning_handler_of_the_users_stays() -> None:
    """Silencing must not take over what the user has set."""
    before = mujoco.get_mju_user_warning()
    seen: list[str] = []
    try:
        mujoco.set_mju_user_warning(seen.append)
        handler = mujoco.get_mju_user_warning()
        locomotion.silence_mujoco()
        assert mujoco.get_mju_user_warning() == handler
    finally:
        mujoco.set_mju_user_warning(before)


# -- a description that makes no sense ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"z_index": 1000}, r"z_index = 1000 is not an index of qpos, 0 to 5"),
        ({"z_index": -1}, "z_index = -1 is not an index"),
        ({"observation": (locomotion.Slice("qpos", -5),)}, "observes qpos from -5 to None: its indices are 0 to 5"),
        ({"observation": (locomotion.Slice("qpos", 2, 7),)}, "observes qpos from 2 to 7"),
        ({"observation": (locomotion.Slice("qpos", 4, 4),)}, "the stop comes after the start"),
        ({"observation": ()}, "is empty"),
        ({"observation": ("qpos",)}, "is not a Slice"),
        ({"observation": (locomotion.Slice("time"),)}, "not an array of numbers in MjData"),
        ({"observation": (locomotion.Slice("qpos", clip=-1.0),)}, "clip = -1.0 of qpos is not a number above 0"),
        ({"z_range": (0.3, 0.2)}, "its first number must be below its second"),
        ({"z_range": 0.3}, "is not a pair of numbers"),
        ({"frame_skip": 1.5}, "frame_skip = 1.5 is not a whole number above 0"),
        ({"frame_skip": 0}, "frame_skip = 0 is not a whole number above 0"),
        ({"H": 0}, "H = 0 is not"),
        ({"qpos_noise": -0.1}, "qpos_noise = -0.1 is not a number of at least 0"),
        ({"ctrl_weight": math.nan}, "ctrl_weight = nan is not a finite number"),
        ({"state_most": 0.0}, "state_most = 0.0 is not a number above 0"),
        ({"progress": "y"}, "measures progress by 'y': choose qpos"),
        ({"xml": "nowhere.xml"}, "there is no model 'nowhere.xml'"),
        ({"joint_ranges": (("knee", 0.0, 1.0),)}, "cannot be loaded"),
    ],
    ids=str,
)
def test_every_field_is_checked_when_the_robot_is_bound(changes: dict[str, Any], words: str) -> None:
    described = replace(locomotion.TASKS["Hopper-v5"], name="mine", **changes)
    with pytest.raises(TaskError, match=words):
        make("Locomotion:<mine>", own=described)


def test_a_slice_has_a_stop() -> None:
    described = replace(
        locomotion.TASKS["Hopper-v5"],
        name="mine",
        observation=(locomotion.Slice("qpos", 1, 3), locomotion.Slice("qvel")),
    )
    task = make("Locomotion:<mine>", own=described)
    assert task.n == 2 + 6
    assert task.definition()["locomotion"]["observation"][0] == {"field": "qpos", "start": 1, "stop": 3, "clip": "inf"}
    assert "stop" not in make("Hopper-v5").definition()["locomotion"]["observation"][0]
