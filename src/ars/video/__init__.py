"""Episodes to look at: films and a live window."""
