"""How the course's JupyterLab talks to a page: at once."""

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class Prompt(ZMQChannelsWebsocketConnection):
    """Send each message of a kernel without waiting for the receipt of the one before.

    The network would hold a small one back for that, up to 40 ms: a dragged number is small.
    """

    def connect(self):
        """Begin to pass on what the kernel says."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


c = get_config()  # noqa: F821 - Jupyter runs this file with the function in reach
c.ServerApp.kernel_websocket_connection_class = Prompt
