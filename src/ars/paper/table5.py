"""Table 5: the maximum average reward over all runs of ARS on these seeds, with any hyperparameters, that were
evaluated by 100 rollouts."""

from ars.experiments.run_specs import EVAL_EPISODES
from ars.paper.artefact import NOTHING, Artefact, Shown, Table, main_runs
from ars.presets import paper_robot

# Table 5: over all hyperparameters and the three seeds.
PUBLISHED = {"Swimmer": 365, "Hopper": 3909, "HalfCheetah": 6722, "Walker2d": 11389, "Ant": 5146, "Humanoid": 11600}


def table(shown: Shown) -> Table:
    rows = []
    for task in shown.tasks:
        ours = [c for c in shown.curves if (c.learner, c.task) == ("ars", task) and c.seed in shown.seeds]
        group = [c for c in ours if c.eval_episodes >= EVAL_EPISODES and c.rewards.size]
        printed = str(PUBLISHED[paper_robot(task)])
        if not group:
            rows.append([task, NOTHING, printed, "", "0"])
            continue
        best = max(group, key=lambda c: c.best)
        rows.append([task, f"{best.best:.0f}", printed, f"{best.label}, seed {best.seed}", str(len(group))])
    note = (
        f"The best evaluation, by 100 rollouts, of any run on seeds {', '.join(map(str, shown.seeds))}; the paper took "
        "it over its whole grids and trained for longer. A maximum over more runs is larger by chance: the last column "
        "says over how many."
    )
    columns = ["task", "ours", "the paper's", "by", "runs"]
    return Table("Table 5: maximum average reward achieved", columns, rows, (note,))


def draw(shown: Shown) -> dict[str, bytes]:
    return table(shown).files("table5")


ARTEFACT = Artefact("Maximum average reward achieved", tuple(PUBLISHED), main_runs, draw)
