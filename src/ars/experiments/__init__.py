"""Many runs: what to run, running it side by side, and sweeps."""
