"""A Ray cluster, or a private Ray on this machine: connecting, its nodes, and calls on its CPUs.

This is the only module that imports Ray or uses Ray's private names.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ars.errors import SettingError, WorkerError

try:
    import ray as ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ModuleNotFoundError as error:
    raise WorkerError("The executor ray needs Ray, which is not installed: pip install 'ars-rl[ray]'.") from error

PATIENCE = 1.0  # seconds without a result before we check that the cluster is still there


PF_EXITING = 4  # in the kernel's flags of a process
SERVERS = ("gcs_server", "raylet")  # the processes without which Ray does not work
_helpers: dict[Any, str] = {}  # the processes of a Ray that we started, as psutil has them, and their names

_RESUME = "`ars resume` continues from the last checkpoint, on another cluster or without one."


def connect(cpus: int, address: str | None) -> bool:
    """Connect to the cluster at `address`, or start a Ray that only this machine can reach. Returns whether this call
    connected, and the caller must therefore disconnect."""
    if ray.is_initialized():
        return False
    if address is not None and "://" in address:
        raise SettingError(f"address = {address!r} must be host:port or auto: train on a machine of the cluster.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # otherwise Ray warns about a future change
    # Ray keeps a history of calls for its dashboard, which grows by megabytes per hour.
    os.environ.setdefault("RAY_task_events_report_interval_ms", "0")
    on_sigterm = signal.getsignal(signal.SIGTERM)  # which Ray replaces
    before = _descendants()
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        with _private_settings(loopback=address is None):
            if address is None:
                ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
            else:
                if address != "auto":
                    _reach(address)
                ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        where = "Cannot start Ray" if address is None else f"Cannot connect to a Ray cluster at {address}"
        raise WorkerError(f"{where}: {brief(error)}") from error
    except SystemExit as error:
        if error.code == signal.SIGTERM and callable(on_sigterm):  # Ray's handler, while it starts
            on_sigterm(signal.SIGTERM, None)
        raise
    finally:
        if callable(on_sigterm) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_sigterm)
    if address is None:
        _helpers.update((helper, helper.name()) for helper in _descendants() - before)
    return True


def _descendants() -> set[Any]:
    """All processes below this one, of Ray's or not."""
    import psutil  # which Ray brings along

    return set(psutil.Process().children(recursive=True))


def disconnect() -> None:
    """Leave the cluster; a Ray of our own ends, with those of its helpers that would take a minute to notice."""
    ray.shutdown()
    for helper in _helpers:
        with contextlib.suppress(Exception):  # psutil.NoSuchProcess: it ended by itself
            helper.kill()
    _helpers.clear()


@contextlib.contextmanager
def _private_settings(*, loopback: bool) -> Iterator[None]:
    """Settings that Ray offers only under private names (tested with Ray 2.60): do not print the fate of workers on our
    standard output; with `loopback`, listen on 127.0.0.1 only. Ray does the latter only on systems where it supports no
    clusters; elsewhere it replaces 127.0.0.1 by a public address. tests/executors/test_ray.py checks the sockets."""
    from ray._private import ray_constants, worker

    worker.print_to_stdstream = lambda *_, **__: None
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = before and not loopback
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _reach(address: str) -> None:
    """OSError or ValueError if nothing listens there; Ray itself would wait a minute and then end the process."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def nodes() -> dict[str, int]:
    """Node → CPUs, for live nodes that have CPUs; WorkerError if there are none."""
    address = ray.get_runtime_context().gcs_address
    _check_servers()
    try:
        _reach(address)
    except OSError as error:
        raise WorkerError(f"The head of the Ray cluster at {address} is gone. {_RESUME}") from error
    listed: Any = ray.nodes
    cpus = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in listed() if node["Alive"]}
    if not any(cpus.values()):
        raise WorkerError(f"The Ray cluster at {address} has no nodes with CPUs left. {_RESUME}")
    return {node: count for node, count in cpus.items() if count}


def put(value: Any) -> Any:
    """Put a value into the object store. If its process is dead, Ray ends ours without a word: look first."""
    _check_servers()
    return ray.put(value)


def _check_servers() -> None:
    """WorkerError if a Ray that we started has died: Ray itself takes 15 seconds to notice."""
    if any(name in SERVERS and _has_ended(helper) for helper, name in _helpers.items()):
        raise WorkerError(f"The Ray that this run started has died. {_RESUME}")


def _has_ended(helper: Any) -> bool:
    """Or is ending: the kernel says so before it closes the sockets."""
    try:
        after_name = Path(f"/proc/{helper.pid}/stat").read_text().rpartition(")")[2]
        return bool(int(after_name.split()[6]) & PF_EXITING)
    except OSError:  # no such process, or no /proc
        return not helper.is_running()


def on_node(node: str) -> Any:
    """The option that makes Ray run something on this node only."""
    return NodeAffinitySchedulingStrategy(node, soft=False)


def brief(error: Exception) -> str:
    """The first line of Ray's long messages."""
    return " ".join(str(error).strip().partition("\n")[0].split())


def kill(actor: Any) -> None:
    if not ray.is_initialized():  # otherwise ray.kill would connect to some cluster
        return
    with contextlib.suppress(ray.exceptions.RayError):
        ray.kill(actor)


def run_many(
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    cpus: int,
    address: str | None,
    retries: int,
    poll: Callable[[list[int]], None] | None,
    deadline: float,
) -> Generator[tuple[int, Any], None, None]:
    """function(*arguments) for each of `calls`, one per CPU at a time: `ars.workers.run_many` on Ray."""
    connected = connect(cpus, address)
    running: dict[Any, int] = {}
    try:
        remote = ray.remote(function).options(num_cpus=1, max_retries=retries)
        running = {remote.remote(*arguments): i for i, arguments in enumerate(calls)}
        while running and time.monotonic() < deadline:
            done, _ = ray.wait(list(running), num_returns=1, timeout=PATIENCE)
            if not done:
                nodes()  # WorkerError if there are none
            if poll:
                poll(list(running.values()))
            for call in done:
                i = running.pop(call)
                try:
                    result = ray.get(call)
                except ray.exceptions.RayTaskError as error:
                    raise (error.cause or error) from None
                except ray.exceptions.RayError as error:
                    result = WorkerError(f"The worker of call {i} died: {brief(error)}")
                yield i, result
    finally:
        for call in running:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(call, force=True)
        if connected:
            disconnect()
