"""How training scales: Ray against threads on this machine, and a simulation of clusters from measurements."""
