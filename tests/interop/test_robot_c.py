"""A robot in C: compiled, and replayed against NumPy's arithmetic, whose oracle is the simulation itself."""

import copy
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ars.errors import SettingError
from ars.interop.controller import cost, read_controller
from ars.interop.exports import C_FLAGS, export
from ars.interop.robot_c import c_string
from ars.interop.robot_replay import Export, export_robot, record, replay
from ars.noise import Key, Stream
from ars.policy import LinearPolicy
from ars.robots import (
    Act,
    Alive,
    Clock,
    Controls,
    Gravity,
    Gyro,
    Heading,
    JointPositions,
    JointVelocities,
    Keyframe,
    LastAction,
    Observe,
    PositionTargets,
    Robot,
    Sensor,
    Torques,
)
from ars.tasks.mujoco_loop import MujocoTask
from ars.tasks.robots.find import built_in
from ars.tasks.robots.sine import turn

ARS = str(Path(sys.executable).with_name("ars"))
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", C_FLAGS]
HOSTILE = '*/ int main(void) { /* ??/ " \\ %s \n\r\x00 \u2028 é */ #error'

# A post that leans, on it a two-jointed arm with two IMUs.
ARM_MODEL = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <body name="post" euler="10 20 30">
      <joint name="turntable" axis="0 0 1" damping="0.5"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03"/>
      <site name="imu" euler="5 0 40"/>
      <body pos="0 0 0.3">
        <joint name="shoulder" axis="0 1 0" damping="0.5"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
        <body pos="0.3 0 0">
          <joint name="elbow" axis="0 1 0" damping="0.1"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
          <site name="hand"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="at shoulder" joint="shoulder" ctrlrange="-3 2"/>
    <motor name="at elbow" joint="elbow"/>
  </actuator>
  <sensor><framepos name="where" objtype="site" objname="hand"/></sensor>
  <keyframe><key name="home" qpos="0.1 -0.5 1.2"/></keyframe>
</mujoco>
"""


def counted(s: Any, k: Any, m: Any, x: Any) -> None:
    """With memory: calling it twice in a step would show."""
    m[0] += 1.0
    x[0] = s.qpos[0] * m[0]


ARM = Robot(
    name="arm",
    model=ARM_MODEL,
    control_hz=40,
    start=Keyframe("home", qpos_noise=0.1),
    action=Torques(scale=(4.0, -1.5), limit=0.75, rate=60.0),
    observe=[
        LastAction(), Gyro("imu", clip=0.5), Gravity("imu"), Heading("imu"), Gyro("hand", clip=2.0), Clock(0.7),
        JointPositions(minus="home", joints=("elbow", "turntable")), JointVelocities(joints=("turntable",), clip=0.3),
        JointPositions(), Observe(counted, 1, memory=1, clip=30.0), Sensor("where"), Clock(3.0),
    ],
    reward=[Alive(1.0)],
)  # fmt: skip
BEAT = replace(ARM, observe=[Clock(2.0)], action=Torques())
QUADRUPED = built_in("Quadruped-v1")
assert isinstance(QUADRUPED, Robot)


def policy_for(robot: Robot, scale: float = 0.3, observe: str = "all", **more: Any) -> LinearPolicy:
    """Random weights."""
    task = MujocoTask(robot, robot.name, observe=observe, compiled=False)
    random = np.random.default_rng(5)
    M = scale * random.standard_normal((task.p, task.n))
    definition = {**task.definition(), **more}
    return LinearPolicy(M, 0.1 * random.standard_normal(task.n), random.uniform(0.5, 2.0, task.n), definition)


CASES = {
    "quadruped": (QUADRUPED, "all"),
    "subset": (QUADRUPED, "1,3-6,9-18,32"),
    "torques": (ARM, "all"),
    "clock alone": (BEAT, "all"),
}
MACHINES = {
    "this machine": ("gcc", [], []),
    "ARM": ("aarch64-linux-gnu-gcc", ["-static"], ["qemu-aarch64"]),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[LinearPolicy, Export, Path]]:
    """The files of each case."""
    found = {}
    for case, (robot, observe) in CASES.items():
        policy = policy_for(robot, observe=observe)
        files, folder = export_robot(policy, robot, "robot.h"), tmp_path_factory.mktemp("robot")
        for name, content in zip(("robot.h", "robot_vectors.h", "robot_replay.c"), files[:3], strict=True):
            (folder / name).write_bytes(content)
        found[case] = policy, files, folder
    return found


def need(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if "gcc" in missing and os.environ.get("CI") == "true":
        pytest.fail("no C compiler")
    if missing:
        pytest.skip(f"not tested on this machine, {' and '.join(missing)} not installed")


def compile_and_run(
    source: Path, out: Path, *flags: str, machine: str = "this machine", stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    compiler, more, runner = MACHINES[machine]
    need(compiler, *runner)
    result = subprocess.run(
        [compiler, *FLAGS, *more, *flags, str(source), "-o", str(out)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return subprocess.run([*runner, str(out)], input=stdin, capture_output=True, timeout=60)


# -- the replay ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_the_program_replays_ten_seconds_to_the_bit(case: str, machine: str, made: Any, tmp_path: Path) -> None:
    policy, files, folder = made[case]
    assert files.steps == round(10 * policy.task["robot"]["control_hz"])
    result = compile_and_run(folder / "robot_replay.c", tmp_path / "replay", machine=machine)
    assert (result.returncode, result.stderr) == (0, b""), result.stdout
    assert b"in double: largest difference of x 0, of targets 0; equal to the bit" in result.stdout


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_float_has_the_error_that_numpy_predicts(case: str, machine: str, made: Any, tmp_path: Path) -> None:
    _, files, folder = made[case]
    result = compile_and_run(folder / "robot_replay.c", tmp_path / "replay", "-DARS_REAL=float", machine=machine)
    assert result.returncode == 0, result.stdout
    largest = float(result.stdout.split(b"of targets ")[1].split(b";")[0])
    assert 4 * largest == pytest.approx(files.bound, rel=0.06)
    assert 0 < files.bound < 1e-3
    assert f"#define ARS_FLOAT_BOUND {files.bound!r}" in files.header.decode()


def test_another_arithmetic_is_noticed(made: Any, tmp_path: Path) -> None:
    """One bit of one weight, and one sensor in another place."""
    _, _, folder = made["quadruped"]
    header = (folder / "robot.h").read_text()
    weight = header.split("ars_W[ARS_P][ARS_N] = {\n    {")[1].split(",")[0]
    other = repr(float(np.nextafter(float(weight), math.inf)))
    for name, changed in {
        "weight": header.replace(f"{{{weight},", f"{{{other},"),
        "order": header.replace("x[0] = sensors->gyro[0]", "x[0] = sensors->gyro[1]"),
    }.items():
        assert changed != header
        (tmp_path / name).mkdir()
        (tmp_path / name / "robot.h").write_text(changed)
        for file in ("robot_vectors.h", "robot_replay.c"):
            shutil.copy(folder / file, tmp_path / name)
        result = compile_and_run(tmp_path / name / "robot_replay.c", tmp_path / name / "replay")
        assert result.returncode == 1
        assert b"NOT equal to the bit" in result.stdout
        assert b"step 0: x[0] (imu \xcf\x89x)" in result.stdout or name == "weight"


@pytest.mark.parametrize("robot", [QUADRUPED, ARM], ids=["quadruped", "torques"])
def test_the_simulation_is_the_oracle(robot: Robot) -> None:
    """Observations and targets of the arithmetic in NumPy are those of the robot's own loop, to the bit."""
    policy = policy_for(robot)
    controller = read_controller(policy)
    sensors, told = record(policy, robot, controller)
    x, targets = replay(policy, controller, sensors)
    task = MujocoTask(robot, robot.name, compiled=False)
    task.reset(Key(0, Stream.TEST, 0, 0))
    nothing = np.zeros(task.n)
    task._run(policy, 0, 0, 0.0, False, nothing, nothing)
    for step in range(len(x)):
        assert (x[step] == task.arrays.whole).all()
        task._run(policy, step, step + 1, 0.0, False, nothing, nothing)
        assert (targets[step] == task.arrays.ctrl).all()
        assert (told[step] == targets[step]).all()
        assert (policy.act(x[step]).clip(-controller.limit, controller.limit) == task.arrays.action).all()
    if robot is ARM:  # every limit was reached
        column = {entry.name: x[:, j] for j, entry in enumerate(controller.entries)}
        assert (np.abs(column["last at elbow"]) == 0.75).any()
        assert (np.abs(column["imu ωz"]) == 0.5).any()
        assert (np.abs(column["turntable velocity"]) == 0.3).any()
        assert (targets[:, 0] == 2.0).any()
        assert controller.rate == 1.5
        assert np.abs(np.diff(targets, axis=0)).max() == pytest.approx(1.5, abs=1e-12)


def test_scenarios_do_not_disturb_the_vectors() -> None:
    """The definition of a robot that was trained in changing worlds has them, and the controller is the same."""
    policy = policy_for(BEAT)
    policy.task["robot"]["scenarios"] = {"each": 4, "delay": [0, 2]}
    assert export_robot(policy, BEAT, "beat.h").differs == 0.0


# -- the functions ---------------------------------------------------------------------------------------------------


def run_main(made: Any, case: str, body: str, tmp_path: Path, *flags: str, stdin: bytes = b"") -> bytes:
    """A main function around the header of a case."""
    (tmp_path / "main.c").write_text(f'#include <stdio.h>\n#include "robot.h"\nint main(void)\n{{\n{body}\n}}\n')
    result = compile_and_run(tmp_path / "main.c", tmp_path / "main", f"-I{made[case][2]}", *flags, stdin=stdin)
    assert result.returncode == 0
    return result.stdout


def test_the_sine_of_the_clock(made: Any, tmp_path: Path) -> None:
    """In C as in the simulation, up to years of turns."""
    random = np.random.default_rng(0)
    turns = np.concatenate([
        random.uniform(0, 20, 5000), 10 ** random.uniform(-9, 15, 5000), np.arange(4000) / 16, [0.0, 5e-324, 2.0**52],
        np.nextafter(np.arange(100) / 4, np.inf), np.nextafter(np.arange(1, 100) / 4, 0),
    ])  # fmt: skip
    body = """
double v;
while (fread(&v, sizeof v, 1, stdin) == 1) {
    v = ars_turn(v);
    fwrite(&v, sizeof v, 1, stdout);
}
return 0;"""
    got = np.frombuffer(run_main(made, "quadruped", body, tmp_path, stdin=turns.tobytes()))
    assert got.tobytes() == np.array([turn(float(one)) for one in turns]).tobytes()


def test_the_orientation_from_a_quaternion(made: Any, tmp_path: Path) -> None:
    """Gravity and heading as the terms take them from MuJoCo's rotation matrix."""
    random = np.random.default_rng(1)
    quaternions = random.standard_normal((200, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    body = """
double q[4];
ars_sensors s;
while (fread(q, sizeof(double), 4, stdin) == 4) {
    ars_orient(q[0], q[1], q[2], q[3], &s);
    fwrite(s.gravity, sizeof(double), 3, stdout);
    fwrite(&s.heading, sizeof(double), 1, stdout);
}
return 0;"""
    got = np.frombuffer(run_main(made, "quadruped", body, tmp_path, stdin=quaternions.tobytes())).reshape(-1, 4)
    for quaternion, row in zip(quaternions, got, strict=True):
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, quaternion)
        np.testing.assert_allclose(row, [*(R.reshape(3, 3).T @ [0, 0, -1.0]), R[3]], atol=1e-15)


def test_a_broken_sensor_holds_the_targets(made: Any, tmp_path: Path) -> None:
    """NaN and infinity reach neither the motors nor the state."""
    body = """
double target[ARS_P], bad[2];
ars_state s;
ars_sensors in;
int i, k;
for (i = 0; i < ARS_SENSORS; i++)
    ((double *)&in)[i] = 0.01 * i;
if (fread(bad, sizeof(double), 2, stdin) != 2)
    return 1;
ars_reset(&s);
printf("%d", ars_step(&s, &in, target));
for (k = 0; k < 2; k++) {
    double kept[ARS_P], healthy = in.q[3];
    for (i = 0; i < ARS_P; i++)
        kept[i] = target[i];
    in.q[3] = bad[k];
    printf(" %d", ars_step(&s, &in, target));
    for (i = 0; i < ARS_P; i++)
        if (target[i] != kept[i] || s.target[i] != kept[i] || !(s.action[i] <= 1.0 && s.action[i] >= -1.0))
            return 2;
    in.q[3] = healthy;
}
i = ars_step(&s, &in, target);
printf(" %d, step %g", i, s.step);
return 0;"""
    bad = np.array([np.nan, -np.inf]).tobytes()
    assert run_main(made, "quadruped", body, tmp_path, stdin=bad) == b"1 0 0 1, step 4"


def test_the_policy_itself_has_the_bits_of_act(made: Any, tmp_path: Path) -> None:
    policy = made["subset"][0]
    x = np.random.default_rng(2).standard_normal((100, policy.n))
    body = """
double x[ARS_N], a[ARS_P];
while (fread(x, sizeof(double), ARS_N, stdin) == ARS_N) {
    ars_pi(x, a);
    fwrite(a, sizeof(double), ARS_P, stdout);
}
return 0;"""
    assert run_main(made, "subset", body, tmp_path, stdin=x.tobytes()) == policy.act(x).tobytes()


# -- the header ------------------------------------------------------------------------------------------------------


def test_the_header_says_what_the_hardware_must_know(made: Any) -> None:
    text = made["quadruped"][1].header.decode("ascii")
    for line in (
        "#define ARS_CONTROL_HZ 50.0", "#define ARS_DT 0.02 ", "#define ARS_SENSORS 31 ", "#define ARS_N 33 ",
        'target[2]: "FR_calf_joint" = -1.8 + 0.5 * action, from -2.818 to -0.888', "ARS_REAL heading;",
        'x[9]: "FR_calf_joint" minus -1.8, rad', '/*   q[2]: "FR_calf_joint", rad */', "Every 0.02 s:",
    ):  # fmt: skip
        assert line in text
    assert "#include" not in text
    assert not any(word in text for word in ("malloc", "long", "uint", "math.h"))


def test_a_subset_asks_for_the_sensors_that_it_needs(made: Any) -> None:
    """Members that are not seen at all are left out; the others keep their indices."""
    policy, files, _ = made["subset"]
    text = files.header.decode("ascii")
    assert "ARS_REAL dq[" not in text
    assert "ARS_REAL gyro[3];" in text
    assert "x[0] = sensors->gyro[1];" in text
    assert "x[5] = sensors->q[2] - (ARS_REAL)(-1.8);" in text
    assert f'x[{policy.n - 1}]: "clock cos"; entry 32 of the task\'s' in text
    assert "ars_turn(1.5 * (state->step * ARS_DT) + 0.25);" in text


def test_what_c_cannot_compute_is_an_input(made: Any) -> None:
    """A second IMU, a sensor of the model, and a term of the user's own; a joint that is seen twice is one input."""
    controller = read_controller(made["torques"][0])
    named = {
        source: [one.name for one in controller.sensors if one.source == source] for source in ("q", "dq", "other")
    }
    assert named == {
        "q": ["elbow", "turntable", "shoulder"],
        "dq": ["turntable velocity"],
        "other": ["hand ωx", "hand ωy", "hand ωz", "counted", "where 0", "where 1", "where 2"],
    }


def test_costs_are_counted_by_hand() -> None:
    """Two outputs of a clock: 4 weights; 14 multiplications and 12 additions per sine, one more for the cosine."""
    policy = policy_for(BEAT)
    found = cost(policy, read_controller(policy))
    assert found.multiplications == 4 + 2 + 2 * 14
    assert found.additions == 4 + 2 + 2 + 2 * 12 + 1 + 1
    assert found.comparisons == 2 + 2 * 2 + 2 * 2 + 2 * 2
    assert found.constants == 4 + 5 * 2 + 1 + 2 + 12


def hostile_policy() -> LinearPolicy:
    policy = policy_for(ARM, name=HOSTILE)
    task = copy.deepcopy(policy.task)
    task["robot"] |= {"actuators": [HOSTILE, "??/"], "model": HOSTILE}
    for term in task["robot"]["observe"]:
        term["names"], term["unit"] = [f"{i}{HOSTILE}" for i, _ in enumerate(term["names"])], HOSTILE
    return LinearPolicy(policy.M, policy.mu, policy.sigma, task)


def test_names_stay_inside_comments_and_strings(tmp_path: Path) -> None:
    """They come from a file; the program prints them as they are."""
    (tmp_path / "robot.h").write_bytes(export(hostile_policy(), "c"))
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "robot.h"\nint main(void)\n{\n    puts(ars_target_names[1]);\n'
        "    fputs(ars_target_names[0], stdout);\n    return 0;\n}\n"
    )
    result = compile_and_run(tmp_path / "main.c", tmp_path / "main", "-Wno-trigraphs")
    assert result.stdout.split(b"\n", 1) == [b"??/", HOSTILE.split("\x00")[0].encode()]


@settings(max_examples=30)
@given(st.text(max_size=80))
def test_strings_are_plain_and_closed(text: str) -> None:
    written = c_string(text)
    assert written.isascii()
    assert written.isprintable()
    inside = written[1:-1]
    assert '"' not in inside
    assert "??" not in inside
    octal = inside.encode().decode("unicode_escape").encode("latin-1")
    assert octal == text.encode(errors="replace")


# -- what is refused -------------------------------------------------------------------------------------------------


def own_action(s: Any, k: Any, m: Any, a: Any, ctrl: Any) -> None:
    ctrl[0] = a[0]


@pytest.mark.parametrize("action", [Act(own_action), Controls()])
def test_actions_without_known_limits_are_refused(action: Any) -> None:
    with pytest.raises(SettingError, match="whose limits C cannot know: use PositionTargets or Torques"):
        export(policy_for(replace(ARM, action=action)), "c")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("control_hz",), 0), (("control_hz",), "inf"), (("control_hz",), True), (("action",), {}),
        (("action", "offset"), [1.0]), (("action", "scale"), ["inf", 1.0]), (("action", "low"), [None, 1.0]),
        (("action", "limit"), -1.0), (("action", "rate"), "nan"), (("actuators",), ["one"]), (("observe",), []),
        (("observe", 0, "names"), ["one"]), (("observe", 1, "clip"), 0), (("observe", 1, "names"), ["x", "y"]),
        (("observe", 5, "hz"), "inf"), (("observe", 6, "offsets"), [1e300, 0.0]), (("observe", 6), 7),
        (("observe", 6, "offsets"), ["1.0; int x", 0.0]),
    ],
)  # fmt: skip
def test_damaged_descriptions_are_refused(where: tuple[Any, ...], value: Any) -> None:
    policy = policy_for(ARM)
    task = copy.deepcopy(policy.task)
    place = task["robot"]
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(SettingError, match="is damaged"):
        export(LinearPolicy(policy.M, policy.mu, policy.sigma, task), "c")


def test_vectors_of_another_robot_are_refused() -> None:
    policy = policy_for(ARM)
    with pytest.raises(SettingError, match="arm is not the robot that this policy was trained on: its control_hz"):
        export_robot(policy, replace(ARM, control_hz=50), "arm.h")
    with pytest.raises(SettingError, match="its action is another"):
        export_robot(policy, BEAT, "arm.h")
    with pytest.raises(SettingError, match="Hopper-v5 is not a robot of terms"):
        export_robot(policy, "Hopper-v5", "arm.h")
    with pytest.raises(SettingError, match="is not a name that C can include"):
        export_robot(policy, ARM, 'a".h')


def test_positions_without_a_rate_or_a_range() -> None:
    """Targets that nothing limits have no limit in C either."""
    robot = replace(ARM, action=PositionTargets("home", scale=0.1))
    text = export(policy_for(robot), "c").decode()
    assert 'target[1]: "at elbow" = 1.2 + 0.1 * action, from any value to any value' in text
    assert "ars_low[ARS_P] = {-3.0, -3e+38};" in text
    assert "goal = ars_within(goal" not in text


# -- the command -----------------------------------------------------------------------------------------------------


def ars(*words: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([ARS, *words], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result.stderr
    return result


def test_the_command_writes_three_files_that_run(tmp_path: Path) -> None:
    policy_for(QUADRUPED).save(tmp_path / "own.npz")
    said = ars("export", "own.npz", "--to", "c", cwd=tmp_path).stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "own.npz", "Quadruped-v1.h", "Quadruped-v1_vectors.h", "Quadruped-v1_replay.c"
    }  # fmt: skip
    assert "Wrote Quadruped-v1.h: 31 sensor values, 33 observations, 12 targets at 50 Hz" in said
    assert "Constants: 3864 bytes in double, 1932 in float. A step: 436 multiplications, 458 additions, 64" in said
    assert "500 steps of the simulation, whose own targets differ by at most 0, and" in said
    need("cc")
    last = said.splitlines()[-1]
    result = subprocess.run(last, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert "equal to the bit" in result.stdout
    assert result.returncode == 0


def test_the_command_imports_a_robot_only_if_the_user_names_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\nfrom ars.tasks.robots.quadruped import QUADRUPED\n"
        "ROBOT = replace(QUADRUPED, name='mine')\n"
    )
    policy_for(QUADRUPED, name="mine:ROBOT").save(tmp_path / "own.npz")
    (tmp_path / "out").mkdir()
    said = ars("export", "own.npz", "--to", "c", "--out", "out", cwd=tmp_path).stdout
    assert "there are no test vectors" in said
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine-ROBOT.h"]
    said = ars("export", "own.npz", "--to", "c", "--out", "out/mine.h", "--task", "mine:ROBOT", cwd=tmp_path).stdout
    assert "-o out/mine_replay && out/mine_replay" in said
    assert len(list((tmp_path / "out").iterdir())) == 4
    piped = ars("export", "own.npz", "--to", "c", "--out", "/dev/stdout", "--task", "mine:ROBOT", cwd=tmp_path)
    assert piped.stdout.endswith("#endif\n")
    assert "Targets in float: within" in piped.stderr
    assert ars("export", "own.npz", "--to", "json", cwd=tmp_path).stdout.startswith("Wrote ")


# -- the page --------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text()


def test_the_example_in_c_compiles(made: Any, tmp_path: Path) -> None:
    """docs/hardware.md, with drivers that answer nothing: then the joints are damped."""
    drivers = """
#include <stdio.h>
int read_imu(ARS_REAL *gyro, ARS_REAL *quaternion) { (void)gyro; (void)quaternion; return 0; }
int read_joints(ARS_REAL *q, ARS_REAL *dq) { (void)q; (void)dq; return 0; }
void send_targets(const ARS_REAL *target) { (void)target; }
void damp_joints(void) { puts("damped"); }
int main(void) { start(); tick(); return 0; }
"""
    shutil.copy(made["quadruped"][2] / "robot.h", tmp_path / "quadruped.h")
    (tmp_path / "robot.c").write_text(PAGE.split("```c\n")[1].split("```")[0] + drivers)
    assert compile_and_run(tmp_path / "robot.c", tmp_path / "robot").stdout == b"damped\n"


def test_the_example_in_python_replays_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = policy_for(QUADRUPED)
    (tmp_path / "runs" / "quadruped").mkdir(parents=True)
    policy.save(tmp_path / "runs" / "quadruped" / "best.npz")
    np.savetxt(tmp_path / "log.txt", np.hstack(record(policy, QUADRUPED, read_controller(policy))), fmt="%.17g")
    monkeypatch.chdir(tmp_path)
    exec(PAGE.split("```python\n")[1].split("```")[0], {})
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "largest difference of targets: 0.0"
    assert len(rest) == 33
    assert rest[6].endswith("  imu heading")
