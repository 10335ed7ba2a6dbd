"""Episodes to watch: films and a live window."""
