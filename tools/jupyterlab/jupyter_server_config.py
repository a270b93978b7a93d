"""What the course asks of the server: no view of a widget is saved without the widget's state.

JupyterLab saves the state of the widgets that live. After a restart none does, but their views are
still in the outputs, and would be opened as "Error displaying widget: model not found". Without the
view an output shows what stands beside it: the picture and "Run the cell to move it."
"""

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def drop_lost_views(model, **_):
    """Take the views out of a notebook that is being saved whose widgets are not saved with it."""
    if model["type"] != "notebook":
        return
    widgets = model["content"]["metadata"].get("widgets", {})
    kept = widgets.get(STATE, {}).get("state", {})
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VIEW in data and len(data) > 1 and data[VIEW]["model_id"] not in kept:
                del data[VIEW]


c = get_config()  # noqa: F821
c.FileContentsManager.pre_save_hook = drop_lost_views
