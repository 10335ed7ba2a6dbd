"""The paper's robots as Gymnasium environments, for other libraries: importing this registers `ars/Hopper-v1` and the
others.

    import ars.gym
    env = gymnasium.make("ars/Hopper-v1")

or, without the import, `gymnasium.make("ars.gym:ars/Hopper-v1")`: Gymnasium has loaded no plugins since 1.0.
"""

import gymnasium

from ars.tasks.locomotion import TASKS
from ars.tasks.paper_envs import V1

IDS = {name: f"ars/{name}" for name in V1}  # task → id

for _name, _env in V1.items():
    if IDS[_name] not in gymnasium.registry:
        gymnasium.register(
            IDS[_name],
            entry_point=f"{_env.__module__}:{_env.__qualname__}",
            max_episode_steps=TASKS[_name].H,
            kwargs={"xml_file": TASKS[_name].xml},
        )
