"""A saved notebook holds no view of a widget without the widget: the picture is shown instead."""

import runpy
from pathlib import Path

from renew import VIEW
from traitlets.config import Config

CONFIG = Path(__file__).parents[1] / "tools" / "jupyterlab" / "jupyter_server_config.py"
STATE = "application/vnd.jupyter.widget-state+json"


def saved(
    state, *bundles, source="import torch\nfrom eleven_steps import sliders", kind="notebook"
):
    """Return what is left of outputs when a notebook is saved with the state of some widgets."""
    settings = Config()
    runpy.run_path(str(CONFIG), init_globals={"get_config": lambda: settings})
    outputs = [{"output_type": "display_data", "data": dict(each)} for each in bundles]
    metadata = {"widgets": {STATE: {"state": state}}} if state is not None else {}
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "source": source, "outputs": outputs}]
    model = {"type": kind, "content": {"metadata": metadata, "cells": cells}}
    settings.FileContentsManager.pre_save_hook(model=model, path="a.ipynb", contents_manager=None)
    return [set(output["data"]) for output in outputs]


FILM = {VIEW: {"model_id": "film"}, "text/html": "<img>", "text/plain": "A film."}


def test_a_view_stays_with_its_state_and_goes_without():
    assert saved({"film": {}}, FILM) == [set(FILM)]
    for state in (None, {}, {"another": {}}):
        assert saved(state, FILM) == [{"text/html", "text/plain"}]


def test_notebooks_that_are_not_the_courses_are_left_alone():
    for source in ("import ipywidgets", "# from helpers import sliders", "helpers = 1"):
        assert saved({}, FILM, source=source) == [set(FILM)]
    assert saved({}, FILM, source="import helpers.attention") != [set(FILM)]


def test_what_has_nothing_but_a_view_keeps_it():
    alone = {VIEW: {"model_id": "lost"}}
    assert saved({}, alone, {"text/plain": "1"}) == [{VIEW}, {"text/plain"}]
    assert saved({}, FILM, kind="file") == [set(FILM)]
