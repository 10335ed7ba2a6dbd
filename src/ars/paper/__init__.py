"""The paper's tables and figures: published values, the runs that each needs, and how it is drawn."""
