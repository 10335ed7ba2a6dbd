"""The paper's tables and figures: one file each, and one line here.

A file has the title, the published values, the runs that are needed and how they are drawn, as an Artefact
(ars/paper/artefact.py). Results beyond the paper have the same form, and come last.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ars.paper.artefact import Artefact

# Name → module, which is imported on first use.
ARTEFACTS = {
    "table1": "ars.paper.table1",
    "table2": "ars.paper.table2",
    "table3": "ars.paper.table3",
    "table4": "ars.paper.table4",
    "table5": "ars.paper.table5",
    "table6": "ars.paper.table6",
    "table7": "ars.paper.table7",
    "figure1": "ars.paper.figure1",
    "figure2": "ars.paper.figure2",
    "figure3": "ars.paper.figure3",
    "figure4": "ars.paper.figure4",
    "figure5": "ars.paper.figure5",
    "ablation": "ars.paper.ablation",
    "caps": "ars.paper.caps",
    "selection": "ars.paper.selection",
}


def load_artefact(name: str) -> "Artefact":
    """The table or figure with a name in ARTEFACTS."""
    artefact: Artefact = import_module(ARTEFACTS[name]).ARTEFACT
    return artefact
