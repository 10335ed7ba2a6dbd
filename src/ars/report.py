"""The former package `ars.report`: importing it raises an error that lists the new places of its public functions."""

raise ImportError(
    "ars.report was split up: import film and writer_for from ars.video.film, write_report from ars.page.report "
    "and read_run from ars.run_files."
)
