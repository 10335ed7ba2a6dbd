"""Old import paths tell what replaced them."""

import importlib

import pytest


@pytest.mark.parametrize("name", ["ars.report", "ars.report.film", "ars.report.page", "ars.report.run_files"])
def test_the_old_report_package_names_the_new_modules(name: str) -> None:
    with pytest.raises(ImportError, match=r"write_report from ars\.page\.report and read_run from ars\.run_files"):
        importlib.import_module(name)
    for path, function in (
        ("ars.video.film", "film"),
        ("ars.page.report", "write_report"),
        ("ars.run_files", "read_run"),
    ):
        assert callable(getattr(importlib.import_module(path), function))


def test_the_comparison_of_lqr_names_its_new_place() -> None:
    with pytest.raises(ImportError, match=r"import compare from ars\.experiments\.lqr\.comparison"):
        importlib.import_module("ars.lqr.comparison")
    assert callable(importlib.import_module("ars.experiments.lqr.comparison").compare)
