"""Many runs: their specifications, running them in parallel, and sweeps."""
