"""Configure JupyterLab's server so that no widget view is saved without its state."""

import re
import warnings

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
OURS = re.compile(r"^\s*(?:from|import) (?:helpers|eleven_steps)\b", re.MULTILINE)


def of_the_course(cell):
    """Say whether a cell imports the course; other notebooks are not changed."""
    return cell["cell_type"] == "code" and bool(OURS.search(cell["source"]))


def drop_lost_views(model, **_):
    """Remove views without widgets from a notebook of the course that is being saved.

    JupyterLab saves the state of the widgets that live. After a restart none does, but their views
    are still in the outputs, and would be opened as "Error displaying widget: model not found".
    Without the view an output shows what stands beside it: the picture and "Run the cell to move
    it."
    """
    if model["type"] != "notebook" or not any(map(of_the_course, model["content"]["cells"])):
        return
    widgets = model["content"]["metadata"].get("widgets", {})
    kept = widgets.get(STATE, {}).get("state", {})
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VIEW in data and len(data) > 1 and data[VIEW]["model_id"] not in kept:
                del data[VIEW]


# The server and JupyterLab in it both read this file, and the second finds the hook of the first.
warnings.filterwarnings("ignore", "Overriding existing pre_save_hook")
c = get_config()  # noqa: F821 - Jupyter runs this file with the function in reach
c.FileContentsManager.pre_save_hook = drop_lost_views
