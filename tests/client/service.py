"""A Refrain process of its own: started, asked, stopped.

Everything a test needs to know comes from outside, as a user would see it: the addresses from
the start message, the state from /readyz and the admin API.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

import httpx2 as httpx

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A deadline no healthy run comes near, on a slow and busy machine too.
PATIENCE = 30

# One client for all: a new one reads the system's certificates, which no test needs.
HTTP = httpx.Client(timeout=PATIENCE, trust_env=False, verify=False, limits=httpx.Limits(max_connections=None))

# What the environment of whoever runs the tests must not decide.
FOREIGN = re.compile(r"REFRAIN_|RUST_LOG$|OPENAI_|ANTHROPIC_|QDRANT_")


def binary() -> pathlib.Path:
    """The compiled binary under test."""
    if named := os.environ.get("REFRAIN_BIN"):
        return pathlib.Path(named)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "refrain"


def environment(**variables: str) -> dict[str, str]:
    """The environment of a `refrain` process: this one's, without what would change its settings."""
    clean = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return clean | variables


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a `refrain` command to its end."""
    return subprocess.run(
        [binary(), *arguments],
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def wait_until(condition, what: str):
    """Polls until `condition()` gives something true, and returns it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE} s in vain: {what}")


class Service:
    """`refrain serve` with a config and a data folder of its own.

    `settings` is TOML, with dotted keys at the top level: `auth.mode = "forward"`.
    """

    def __init__(self, folder: pathlib.Path, settings: str = "", token: str | None = None, **variables: str):
        self.folder = folder
        self.data = folder / "data"
        self.config = folder / "refrain.toml"
        self.log_file = folder / "log"
        self.variables = variables
        self.token = token
        folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            'server.listen = "127.0.0.1:0"\n'
            'admin.listen = "127.0.0.1:0"\n'
            f'store.path = "{self.data}"\n'
            f"{settings}\n"
        )

    def spawn(self) -> "Service":
        """Starts the process and does not wait for it."""
        self.output = (self.folder / "out").open("w")
        self.process = subprocess.Popen(
            [binary(), "serve", "--config", self.config],
            cwd=ROOT,
            env=environment(**self.variables),
            stdout=self.output,
            stderr=self.log_file.open("a"),
        )
        return self

    def start(self) -> "Service":
        """Starts the process and waits until it is ready."""
        self.spawn()
        self.url, self.admin = wait_until(self._addresses, "the start message")
        wait_until(lambda: HTTP.get(f"{self.url}/readyz").is_success, "/readyz")
        return self

    def _addresses(self):
        assert self.process.poll() is None, f"refrain did not start:\n{self.log()}"
        said = re.search(r"listens on (http://\S+)/v1:.*Statistics: (http://\S+)/stats", self.said(), re.DOTALL)
        return said and said.groups()

    def said(self) -> str:
        """Standard output so far."""
        return pathlib.Path(self.output.name).read_text()

    def log(self) -> str:
        """The log so far, of all starts."""
        return self.log_file.read_text()

    def terminate(self):
        """Asks the process to stop, and does not wait."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self):
        """Ends the process in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Stops the process in order; anything but a clean end fails the test."""
        if self.process.returncode is not None:
            return
        self.terminate()
        assert self.process.wait(PATIENCE) == 0, f"refrain ended with a failure:\n{self.log()}"
        assert "panicked" not in self.log(), self.log()

    def get(self, path: str, **parameters):
        """GET on the admin API, which answers with JSON."""
        return self._get(path, parameters).json()

    def get_text(self, path: str) -> str:
        """GET on the admin API, as it comes."""
        return self._get(path, {}).text

    def _get(self, path: str, parameters: dict) -> httpx.Response:
        return self._good(HTTP.get(self.admin + path, params=parameters, headers=self._authorization()))

    def post(self, path: str, body: dict, headers: dict | None = None):
        """POST on the admin API."""
        headers = self._authorization() | (headers or {})
        return self._good(HTTP.post(self.admin + path, json=body, headers=headers)).json()

    def _authorization(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    @staticmethod
    def _good(response: httpx.Response) -> httpx.Response:
        assert response.is_success, response.text
        return response

    def ask(self, question: str, *, key: str | None = None, headers: dict | None = None, **fields) -> httpx.Response:
        """One chat request, without any SDK."""
        headers = dict(headers or {})
        if key:
            headers["authorization"] = f"Bearer {key}"
        body = {"model": "default", "messages": [{"role": "user", "content": question}], **fields}
        return HTTP.post(f"{self.url}/v1/chat/completions", json=body, headers=headers)

    def entries(self) -> list[dict]:
        """All entries in the store, page by page."""
        entries, cursor = [], {}
        while True:
            page = self.get("/admin/entries", limit=500, **cursor)
            entries += page["entries"]
            if "next" not in page:
                return entries
            cursor = {"cursor": page["next"]}

    def wait_stored(self, *responses):
        """Waits until the answers can be found in the store; takes anything with a miss's headers."""
        for response in responses:
            self.wait_entry(response.headers["x-refrain-entry"])

    def wait_entry(self, entry_id: str):
        """Waits until the store, not only the memory, has this entry."""
        wait_until(lambda: entry_id in {entry["id"] for entry in self.entries()}, "the write-back")
