"""The paper's results, one file each: they read presets, train, skip what is done, and write small text files."""
