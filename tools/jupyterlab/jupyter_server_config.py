"""What the course asks of JupyterLab's server: prompt answers, and no view without its state."""

import warnings

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


class Prompt(ZMQChannelsWebsocketConnection):
    """Send each message of a kernel without waiting for the receipt of the one before.

    The network would hold a small one back for that, up to 40 ms: a dragged number is small.
    """

    def connect(self):
        """Begin to pass on what the kernel says."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


def drop_lost_views(model, **_):
    """Take the views out of a notebook that is being saved whose widgets are not saved with it.

    JupyterLab saves the state of the widgets that live. After a restart none does, but their views
    are still in the outputs, and would be opened as "Error displaying widget: model not found".
    Without the view an output shows what stands beside it: the picture and "Run the cell to move
    it."
    """
    if model["type"] != "notebook":
        return
    widgets = model["content"]["metadata"].get("widgets", {})
    kept = widgets.get(STATE, {}).get("state", {})
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VIEW in data and len(data) > 1 and data[VIEW]["model_id"] not in kept:
                del data[VIEW]


# The server and JupyterLab in it both read this file, and the second is told of the first's hook.
warnings.filterwarnings("ignore", "Overriding existing pre_save_hook")
c = get_config()  # noqa: F821 - Jupyter runs this file with the function in reach
c.ServerApp.kernel_websocket_connection_class = Prompt
c.FileContentsManager.pre_save_hook = drop_lost_views
