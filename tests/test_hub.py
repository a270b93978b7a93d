"""A JupyterHub with ten learners at once: no error, and nobody sees another's progress.

It takes minutes, so it runs with `make hub` alone, where JupyterHub and its proxy are installed.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from renew import NOTEBOOKS

CLASS = Path(os.environ.get("ELEVEN_STEPS_CLASS", f"{sys.prefix}-class"))
PROXY = Path("node_modules", "configurable-http-proxy", "bin", "configurable-http-proxy")
LEARNERS = [f"learner{number}" for number in range(10)]
NOTEBOOK = "05_scores.ipynb"
TOKEN = uuid.uuid4().hex
WAIT = 300  # seconds for anything
pytestmark = pytest.mark.nightly

CONFIG = """
import os
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/"
c.JupyterHub.hub_port = {hub_port}
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.concurrent_spawn_limit = 0
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/home/{{username}}"
c.Spawner.cmd = ["{python}", "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--ServerApp.log_level=ERROR", *["--allow-root"] * (os.geteuid() == 0)]
c.Spawner.notebook_dir = "{course}"
c.Spawner.http_timeout = c.Spawner.start_timeout = {wait}
c.Spawner.environment = {{
    "ELEVEN_STEPS_PROGRESS": "~/.eleven_steps/progress.json",
    "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp",
    "PYTHONPATH": {paths!r},
    "OMP_NUM_THREADS": "1",
}}
c.ConfigurableHTTPProxy.command = ["node", "{proxy}"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [
    {{"name": "test", "services": ["test"],
      "scopes": ["admin:users", "admin:servers", "access:servers"]}}
]
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """Start a hub whose learners share the course's folder; return its address and its folder."""
    pytest.importorskip("websocket")
    python, proxy = CLASS / "bin" / "python", CLASS / PROXY
    if not (python.exists() and proxy.exists()):
        pytest.skip(f"JupyterHub and its proxy are not in {CLASS}: make hub installs them")
    folder = tmp_path_factory.mktemp("hub")
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    port, hub_port, api_port = (each.getsockname()[1] for each in held)
    for each in held:
        each.close()
    written = CONFIG.format(
        port=port, hub_port=hub_port, api_port=api_port, folder=folder,
        python=python, course=NOTEBOOKS, proxy=proxy, token=TOKEN, wait=WAIT,
        paths=os.environ.get("PYTHONPATH", ""),
    )  # fmt: skip
    (folder / "jupyterhub_config.py").write_text(written)
    with (folder / "log").open("w") as log:
        command = [python, "-m", "jupyterhub", "-f", "jupyterhub_config.py"]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        await_hub(address, process, folder / "log")
        yield address, folder
    finally:
        process.terminate()
        process.wait(60)


def await_hub(address, process, log):
    """Wait until the hub answers."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            return ask(f"{address}/hub/api/")
        except OSError:
            time.sleep(0.5)
    raise AssertionError(log.read_text())


def ask(address, content=None, method=None):
    """Ask a server something as whoever tests, and return its answer."""
    data = None if content is None else json.dumps(content).encode()
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=WAIT) as answer:
        return json.loads(answer.read() or "null")


class Learner:
    """A learner who opens a notebook in a server of their own and runs its cells."""

    def __init__(self, address, name):
        self.hub, self.name, self.home = f"{address}/hub/api/users/{name}", name, address
        ask(self.hub, {}, "POST")
        ask(f"{self.hub}/server", {}, "POST")
        end = time.monotonic() + WAIT
        while not ask(self.hub)["servers"].get("", {}).get("ready"):
            assert time.monotonic() < end, f"the server of {name} does not start"
            time.sleep(0.5)
        self.server = f"{address}/user/{name}"
        self.kernel = ask(f"{self.server}/api/kernels", {"name": "python3", "path": ""})["id"]
        import websocket  # jupyter-server has it

        channels = f"{self.server}/api/kernels/{self.kernel}/channels".replace("http", "ws", 1)
        self.socket = websocket.create_connection(
            channels, header={"Authorization": f"token {TOKEN}"}, timeout=WAIT
        )

    def run(self, source):
        """Run a cell; return its printed texts and values, and its error or ""."""
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"username": self.name, "session": self.name, "date": "2026-01-01T00:00:00Z"}
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.socket.send(json.dumps(message | {"channel": "shell", "buffers": []}))
        texts, error, ended = "", "", set()
        while ended < {"execute_reply", "idle"}:
            found = self.socket.recv()
            found = {} if isinstance(found, bytes) else json.loads(found)  # binary: a widget's
            if found.get("parent_header", {}).get("msg_id") != header["msg_id"]:
                continue
            kind, said = found["header"]["msg_type"], found["content"]
            ended |= {kind, said.get("execution_state")} & {"execute_reply", "idle"}
            texts += said.get("text", "") + said.get("data", {}).get("text/plain", "")
            if kind == "error":
                error = f"{said['ename']}: {said['evalue']}"
        return texts, error

    def run_all(self):
        """Open the notebook and run it; return errors that no cell is tagged with."""
        content = ask(f"{self.server}/api/contents/{NOTEBOOK}")["content"]
        wrong = []
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                _, error = self.run(cell["source"])
                if error and "raises-exception" not in cell["metadata"].get("tags", []):
                    wrong.append(error)
        return wrong


def test_ten_learners_at_once_run_all_and_keep_their_progress_apart(hub):
    address, folder = hub
    mine = NOTEBOOKS.parent / "my_notebooks" / "progress.json"  # of whoever runs this
    before = mine.read_bytes() if mine.exists() else None
    with ThreadPoolExecutor(len(LEARNERS)) as pool:
        every = list(pool.map(lambda name: Learner(address, name), LEARNERS))
        assert list(pool.map(Learner.run_all, every)) == [[]] * len(LEARNERS)
    first, *others = every
    said, error = first.run('print(check("scores.2", 43))')
    assert "✓ scores.2" in said and "could not be saved" not in said and not error
    assert "scores.2" in (folder / "home" / first.name / ".eleven_steps/progress.json").read_text()
    for other in others:
        assert not (folder / "home" / other.name / ".eleven_steps" / "progress.json").exists()
        assert other.run("check()")[0] != first.run("check()")[0]
    assert (mine.read_bytes() if mine.exists() else None) == before
    for learner in every:
        learner.socket.close()
