"""A policy for other software: a C99 header, an ONNX model, or JSON.

All use the arithmetic of policy.py: W = M / sigma, c = W mu, a_i = −c_i + Σ_j W_ij x_j in the order of j; then bounds,
rounding or argmax of the actions.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ars.errors import SettingError
from ars.files import one_line, safe_name
from ars.policy import Actions, LinearPolicy
from ars.subset import ALL, ranges, to_indices

FORMULA = "a[i] = -c[i] + sum over j of W[i][j] * x[j], in the order of j, with W = M / sigma and c = W mu"
C_FLAGS = "-ffp-contract=off"
ONNX_OPSET, ONNX_IR = 13, 7  # of 2020: supported by every runtime in use


def export(policy: LinearPolicy, to: str) -> bytes:
    """The content of the file; `to` is c, onnx or json."""
    if to not in FORMATS:
        raise SettingError(f"Policies cannot be exported to {to!r}: choose {', '.join(FORMATS)}.")
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(policy.W).all() and np.isfinite(policy.c).all()):
            raise SettingError("This policy has weights M / sigma that are not finite: it cannot be exported.")
    try:
        return FORMATS[to](policy)
    except (ValueError, TypeError, OverflowError) as error:  # from a damaged description of the task
        raise SettingError(f"This policy cannot be exported to {to}: {one_line(error)}.") from error


def file_name(policy: LinearPolicy, to: str) -> str:
    """The default file name, such as Hopper-v1.h."""
    name = safe_name(task_name(policy))
    return f"{name[:100].lstrip('.') or 'policy'}{SUFFIXES[to]}"


def task_name(policy: LinearPolicy) -> str:
    return str(policy.task.get("name", "policy")).encode(errors="replace").decode()  # JSON allows lone surrogates


def origin(policy: LinearPolicy) -> dict[str, Any]:
    """What is known about the origin of the policy."""
    names = ("iteration", "eval_mean", "imported", "versions")
    return {name: policy.task[name] for name in names if name in policy.task}


def names(policy: LinearPolicy) -> dict[str, list[str]]:
    """The names of the numbers that the policy takes: from the model for the six robots, x0, x1, … otherwise."""
    from ars.tasks.axis_names import name_axes

    axes = name_axes(task_name(policy), policy.task, policy.n, policy.p)
    plain = len(axes.columns) == 1
    observation = [name if plain else f"{kind.title}: {name}" for kind in axes.columns for name in kind.names]
    return {"observation": observation, "action": list(axes.rows)}


def _entries(policy: LinearPolicy) -> dict[str, list[int]]:
    """Which entries of the task's observation the n inputs are, in order; nothing for all of them."""
    return {} if policy.observe == ALL else {"entries": to_indices(policy.observe, ranges(policy.observe)[-1][1] + 1)}


# -- JSON ------------------------------------------------------------------------------------------------------------


def to_json(policy: LinearPolicy) -> bytes:
    """With full precision; an infinite sigma (an ignored coordinate), which JSON lacks, is null."""
    value = {
        "format": "ars linear policy 1",
        "task": task_name(policy),
        "n": policy.n,
        "p": policy.p,
        "formula": FORMULA,
        "infinite": "null in sigma is +infinity, in the actions' bounds no bound",
        "W": policy.W.tolist(),
        "c": policy.c.tolist(),
        "M": policy.M.tolist(),
        "mu": policy.mu.tolist(),
        "sigma": [value if math.isfinite(value) else None for value in policy.sigma.tolist()],
        "names": names(policy),
        **_entries(policy),
        "actions": policy.actions.to_dict(),
        "definition": policy.task,
    }
    return (json.dumps(value, allow_nan=False, indent=1) + "\n").encode()


# -- C ---------------------------------------------------------------------------------------------------------------


def to_c(policy: LinearPolicy) -> bytes:
    """One C99 header without includes; of a robot of terms, one that assembles its observation too."""
    if "robot" in policy.task:
        from ars.interop.robot_c import robot_header

        return robot_header(policy)
    actions = policy.actions
    count = 1 if actions.kind == "discrete" else policy.p
    rows = ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in policy.W.tolist())
    named, newline = names(policy), "\n"
    entries = _entries(policy).get("entries")
    listed = [
        f" *   observation[{j}]: {c_comment(name)}" + (f", entry {entries[j]} of the task's" if entries else "")
        for j, name in enumerate(named["observation"])
    ]
    listed += [f" *   a[{i}]: {c_comment(name)}" for i, name in enumerate(named["action"])]
    return f"""\
/* A linear policy by Augmented Random Search.
 * task: {c_comment(task_name(policy))}
 * made: {c_comment(origin(policy))}
 * {FORMULA}
 * Compile with {C_FLAGS} to get the same bits as `policy.act`: no fused multiply-add, no -ffast-math.
 * observation: {c_comment(policy.task.get("observation", {"shape": [policy.n]}))}, flattened{_c_subset(policy)}
 * action: {c_comment(actions.to_dict())}
{newline.join(listed)}
 */
#ifndef ARS_POLICY_H
#define ARS_POLICY_H

#define ARS_N {policy.n} /* numbers of an observation */
#define ARS_P {policy.p} /* outputs of the policy */
#define ARS_ACTIONS {count} /* numbers that ars_act writes */

static const double ars_W[ARS_P][ARS_N] = {{
{rows}
}};
static const double ars_c[ARS_P] = {{{", ".join(map(repr, policy.c.tolist()))}}};

/* The policy itself: observation[ARS_N] -> a[ARS_P]. */
static inline void ars_pi(const double *observation, double *a)
{{
    int i, j;
    for (i = 0; i < ARS_P; i++) {{
        a[i] = -ars_c[i];
        for (j = 0; j < ARS_N; j++)
            a[i] += ars_W[i][j] * observation[j];
    }}
}}

/* What the environment takes: observation[ARS_N] -> action[ARS_ACTIONS], which must not overlap. */
static inline void ars_act(const double *observation, double *action)
{{
{_c_action(policy)}}}

#endif
""".encode("ascii")


def _c_subset(policy: LinearPolicy) -> str:
    seen = c_comment(policy.observe).strip('"')
    return "" if policy.observe == ALL else f"; of these, in order, only the entries {seen}"


def _c_action(policy: LinearPolicy) -> str:
    """The body of ars_act: argmax, or bounds and rounding."""
    actions = policy.actions
    if actions.kind == "discrete":
        return f"""\
    double a[ARS_P];
    int i, best = 0;
    ars_pi(observation, a);
    for (i = 1; i < ARS_P; i++) /* a NaN counts as the largest, as in NumPy */
        if (a[i] > a[best] || (a[i] != a[i] && a[best] == a[best]))
            best = i;
    action[0] = {float(actions.start)!r} + best;
"""
    lines = [
        f"    if (action[{i}] {sign} {bound!r}) action[{i}] = {bound!r};"
        for sign, bounds in (("<", actions.low), (">", actions.high))
        for i, bound in enumerate(bounds or ())
        if math.isfinite(bound)
    ]
    if rounding := _c_rounding(actions):
        lines += ["    for (i = 0; i < ARS_P; i++)", f"        action[i] = {rounding};"]
    return "\n".join(["    int i;"] * bool(rounding) + ["    ars_pi(observation, action);", *lines, ""])


def _c_rounding(actions: Actions) -> str:
    """An expression that rounds action[i] to the action's dtype; empty for doubles."""
    kind = np.dtype(actions.dtype or "float64")
    if kind == np.float64:
        return ""
    if kind == np.float32:
        return "(double)(float)action[i]"
    if kind.kind not in "iu":
        raise SettingError(f"This policy has actions of {kind}, which C99 does not have: export it to onnx or json.")
    if not np.isfinite([*(actions.low or (math.inf,)), *(actions.high or ())]).all():
        raise SettingError(f"This policy has actions of {kind} without bounds: they cannot be exported to C.")
    # rounds to nearest, halves to even: doubles this close to 2^53 have no digits after the point
    return "(action[i] + 6755399441055744.0) - 6755399441055744.0"


def c_comment(value: Any) -> str:
    """Any text as one line of ASCII that cannot end the comment or begin another."""
    if isinstance(value, str):
        value = value.translate({ord("ω"): "w", ord("τ"): "t", ord("·"): " "})  # in names of the robots
    return json.dumps(value)[:2000].replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?")


# -- ONNX ------------------------------------------------------------------------------------------------------------

Node = tuple[str, list[str], str, dict[str, Any]]  # operator, inputs, output, attributes


def to_onnx(policy: LinearPolicy) -> bytes:
    """float64 throughout: `observation` (batch, n) → `pi` (batch, p) and `action`."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise SettingError(
            "ONNX needs the package onnx, which is not installed: pip install 'ars-rl[onnx]'."
        ) from error
    constants = {"Wt": policy.W.T.copy(), "c": policy.c}
    nodes: list[Node] = [("MatMul", ["observation", "Wt"], "Wx", {}), ("Sub", ["Wx", "c"], "pi", {})]
    rule_nodes, rule_constants, shape, kind = _onnx_actions(policy)
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants | rule_constants).items()]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], **more) for op, inputs, output, more in nodes + rule_nodes],
        "ars",
        [helper.make_tensor_value_info("observation", TensorProto.DOUBLE, ["batch", policy.n])],
        [
            helper.make_tensor_value_info("pi", TensorProto.DOUBLE, ["batch", policy.p]),
            helper.make_tensor_value_info("action", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), ["batch", *shape]),
        ],
        initializers,
    )
    model = helper.make_model(
        graph,
        producer_name="ars",
        ir_version=ONNX_IR,
        opset_imports=[helper.make_opsetid("", ONNX_OPSET)],
        doc_string=f"{task_name(policy)}: {FORMULA}",
    )
    more = {"names": json.dumps(names(policy)), "definition": json.dumps(policy.task)}
    more |= {name: json.dumps(indices) for name, indices in _entries(policy).items()}
    helper.set_model_props(model, {"task": task_name(policy), "formula": FORMULA, **more})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _onnx_actions(policy: LinearPolicy) -> tuple[list[Node], dict[str, Any], list[int], str]:
    """From `pi` to `action`: nodes, constants, the action's shape and dtype."""
    actions = policy.actions
    if actions.kind == "discrete":
        best: Node = ("ArgMax", ["pi"], "best", {"axis": 1, "keepdims": 0})
        return [best, ("Add", ["best", "start"], "action", {})], {"start": np.array(actions.start)}, [], "int64"
    kind, shape = actions.dtype or "float64", list(actions.shape or (policy.p,))
    nodes, constants, last = list[Node](), {"shape": np.array([-1, *shape])}, "pi"
    if actions.low is not None:
        constants |= {"low": np.array(actions.low), "high": np.array(actions.high)}
        nodes += [("Max", [last, "low"], "raised", {}), ("Min", ["raised", "high"], "clipped", {})]
        last = "clipped"
    if np.dtype(kind).kind in "iu":
        nodes, last = [*nodes, ("Round", [last], "rounded", {})], "rounded"
    if kind != "float64":
        from onnx import helper

        to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        nodes, last = [*nodes, ("Cast", [last], "cast", {"to": to})], "cast"
    return [*nodes, ("Reshape", [last, "shape"], "action", {})], constants, shape, kind


FORMATS: dict[str, Callable[[LinearPolicy], bytes]] = {"c": to_c, "onnx": to_onnx, "json": to_json}
SUFFIXES = {"c": ".h", "onnx": ".onnx", "json": ".json"}
