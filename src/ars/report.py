"""The former package `ars.report`: importing it, or a module of it, tells where its public functions are now."""

raise ImportError(
    "ars.report has been divided: import film and writer_for from ars.video.film, write_report from ars.page.report "
    "and read_run from ars.run_files."
)
