"""Robots as data: a model, and terms that are compiled into the loop. `ars.robots` has the names that users need."""
