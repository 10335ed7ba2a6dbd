"""The paper's rivals, measured on our tasks by one evaluator: `ars rivals`."""
