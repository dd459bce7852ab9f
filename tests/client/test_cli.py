"""The command line: what it says, to whom, and with which exit code."""

import json
import os
import pathlib
import socket
import sys

import pytest

from asking import PARAPHRASE, QUESTION
from service import ROOT, Service, command

BONUS = "When is the bonus paid?"
STREAM = ROOT / "tests" / "data" / "stream.tsv"


def settings_file(folder: pathlib.Path, settings: str = "") -> str:
    """A config file: a free port, a data folder of its own and the one encoder that loads fast,
    unless the settings say otherwise."""
    file = folder / "refrain.toml"
    for own in (
        f'store.path = "{folder}/data"',
        'server.listen = "127.0.0.1:0"',
        'admin.listen = "127.0.0.1:0"',
        'embedder.models = ["bge-small-en-v1.5"]',
    ):
        if own.split(" ")[0] not in settings:
            settings = f"{own}\n{settings}"
    file.write_text(settings + "\n")
    return str(file)


def fails(process, *words: str) -> str:
    """A failure for people: exit code 1, the words, and nothing of the program's inside."""
    said = process.stdout + process.stderr
    assert process.returncode == 1, said
    for inside in ("panicked", "RUST_BACKTRACE", "stack backtrace", "src/", "Error {", "Some("):
        assert inside not in said
    for word in words:
        assert word in said, f"{word!r} is not in:\n{said}"
    return said


def does_not_start(process, *words: str):
    """A start that fails with one sentence."""
    fails(process, *words)
    assert process.stdout == ""
    sentences = [line for line in process.stderr.splitlines() if not line.startswith("{")]
    assert len(sentences) == 1 and sentences[0].startswith("refrain: "), process.stderr


def test_help_has_examples():
    said = command("--help")
    assert said.returncode == 0
    for example in ("Examples:", "refrain serve --config", "refrain evict --namespace hr --dry-run"):
        assert example in said.stdout


@pytest.mark.parametrize("arguments", [[], ["fly"], ["serve", "--port", "1"], ["evict"], ["explain"], ["eval"]])
def test_a_wrong_command_line_is_exit_code_2_with_the_usage(arguments):
    said = command(*arguments)
    assert said.returncode == 2
    assert "Usage: refrain" in said.stderr and said.stdout == ""


def test_check_finds_nothing_wrong(tmp_path):
    both = 'embedder.models = ["bge-small-en-v1.5", "multilingual-e5-small"]'
    said = command("check", "--config", settings_file(tmp_path, both))
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert all(line.startswith("ok    ") for line in lines)
    for part in ("config: ", "models: bge-small-en-v1.5", "models: multilingual-e5-small", "store: ", "providers: default -> rules (faq)"):
        assert any(part in line for line in lines), part


def test_check_calls_each_provider_once(tmp_path, desk, upstream):
    key = tmp_path / "key"
    key.write_text(desk.key)
    file = settings_file(tmp_path, upstream.settings(api_key=f"file:{key}"))
    said = command("check", "--providers", "--config", file)
    assert said.returncode == 0, said.stdout + said.stderr
    lines = said.stdout.splitlines()
    for target in ("fake/fake-large", "claude/claude-fake"):
        assert any(line.startswith(f"ok    {target}, key 1 (file:{key}): answers after ") for line in lines), lines
    assert any(line.startswith("skip  openai: left out, because no key is set: key 1 (env:OPENAI_API_KEY)") for line in lines), lines
    assert sorted(call.path for call in desk.calls) == ["/v1/chat/completions", "/v1/messages"]

    desk.respond = lambda exchange: exchange.refuse(401, f"Incorrect API key: {desk.key}")
    said = fails(command("check", "--providers", "--config", file), "WRONG fake/fake-large", "key 1 is not accepted")
    assert "Incorrect API key: [key]" in said and desk.key not in said


def test_check_of_a_provider_that_is_not_there(tmp_path, upstream):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = "http://127.0.0.1:{}/v1".format(server.getsockname()[1])
    file = settings_file(tmp_path, upstream.settings(url=url))
    fails(command("check", "--providers", "--config", file), "WRONG fake/fake-large: no connection: refused: is it running?")


@pytest.mark.parametrize("example", sorted((ROOT / "config" / "examples").glob("*.toml")), ids=lambda file: file.stem)
def test_examples_say_which_key_is_missing(example):
    fails(command("check", "--providers", "--config", str(example)), f"ok    config: {example}", "there is no key")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('server.listen = "nowhere"', ["refrain.toml", 'server.listen = "nowhere"']),
        ("server.listne = 1", ["refrain.toml", "server.listne", "`listen`"]),
        ('auth.mode = "closed"', ["refrain.toml", 'auth.mode = "closed"', "`open`, `keys`, `forward`"]),
        ('auth.mode = "keys"', ["auth.mode", "auth.keys"]),
        ('admin.listen = "0.0.0.0:0"', ["admin.listen", "0.0.0.0:0", "admin.token"]),
        ("store.candidates = 0", ["store.candidates = 0", "1 or more"]),
        ('namespaces.hr.ttl = "soon"', ["refrain.toml", 'namespaces.hr.ttl = "soon"']),
        ('models.fast.targets = [{ provider = "nobody" }]', ["models.fast", '"nobody"', "openai, rules"]),
        ("[server", ["refrain.toml", "TOML"]),
    ],
)
@pytest.mark.parametrize("name", ["check", "serve"])
def test_a_wrong_setting_is_named_with_what_is_allowed(tmp_path, name, settings, words):
    fails(command(name, "--config", settings_file(tmp_path, settings)), *words)


def test_the_environment_overlays_the_file(tmp_path):
    file = settings_file(tmp_path, 'server.listen = "nowhere"')
    assert command("check", "--config", file, REFRAIN__SERVER__LISTEN="127.0.0.1:0").returncode == 0
    wrong = command("check", "--config", file, REFRAIN__SERVER__LISTEN="elsewhere")
    fails(wrong, "the environment", 'server.listen = "elsewhere"')


def test_a_config_file_that_is_not_there():
    fails(command("serve", "--config", "/nowhere/refrain.toml"), "/nowhere/refrain.toml", "no such config file")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('embedder.folder = "/nowhere"', ["/nowhere/bge-small-en-v1.5", "models/fetch", "embedder.folder"]),
        ('embedder.runtime = "/nowhere/lib.so"', ["/nowhere/lib.so", "models/fetch", "embedder.runtime"]),
        ('embedder.runtime = "Cargo.toml"', ["Cargo.toml", "models/fetch", "embedder.runtime"]),
        ('store.path = "Cargo.toml"', ["Cargo.toml", "store.path"]),
        ('providers.x = { kind = "openai", url = "http://x", api_key = "env:NO_KEY" }', ["env:NO_KEY", "providers.x"]),
        ('providers.rules.file = "/nowhere/faq.toml"', ["/nowhere/faq.toml", "providers.rules"]),
        ('log.filter = "a=b=c"', ["log.filter", "a=b=c", "info,refrain=debug"]),
        ('admin.token = "file:/nowhere/token"', ["admin.token", "/nowhere/token"]),
        ('server.max_headers = "1"', ["server.max_headers"]),
    ],
)
def test_check_finds_what_stops_the_start(tmp_path, settings, words):
    # Where the environment names the runtime, the setting does not count.
    file = settings_file(tmp_path, settings)
    checked = command("check", "--config", file, ORT_DYLIB_PATH="")
    fails(checked, *words)
    assert "WRONG " in checked.stdout and "1 of " in checked.stderr
    does_not_start(command("serve", "--config", file, ORT_DYLIB_PATH=""), *words)


def test_a_missing_model_file_is_named(tmp_path):
    folder = tmp_path / "models" / "bge-small-en-v1.5"
    folder.mkdir(parents=True)
    for file in (ROOT / "models" / "bge-small-en-v1.5").iterdir():
        if file.name != "tokenizer.json":
            (folder / file.name).symlink_to(file.resolve())
    settings = f'embedder.folder = "{tmp_path}/models"'
    fails(command("check", "--config", settings_file(tmp_path, settings)), "tokenizer.json", "models/fetch")
    (folder / "tokenizer.json").write_text("{")
    fails(command("check", "--config", settings_file(tmp_path, settings)), "bge-small-en-v1.5", "models/fetch")


@pytest.mark.parametrize("listener", ["server.listen", "admin.listen"])
def test_a_port_in_use(tmp_path, listener):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:{}".format(taken.getsockname()[1])
        file = settings_file(tmp_path, f'{listener} = "{address}"')
        does_not_start(command("serve", "--config", file), listener, address)


def test_a_data_folder_in_use(serve):
    running = serve()
    words = [str(running.data), "another process", "store.path"]
    does_not_start(command("serve", "--config", str(running.config)), *words)
    fails(command("check", "--config", str(running.config)), "WRONG store: ", *words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_data_folder_that_is_read_only(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    does_not_start(command("serve", "--config", settings_file(tmp_path, "")), str(folder), "store.path")


@pytest.fixture(scope="module")
def filled(upstream, tmp_path_factory):
    """A service with an answer in namespace default and one in hr; the first was asked for twice."""
    service = Service(tmp_path_factory.mktemp("filled"), upstream.settings() + 'namespaces.hr.ttl = "1h"\n').start()
    first = service.ask(QUESTION)
    service.wait_stored(first, service.ask(BONUS, headers={"x-refrain-namespace": "hr"}))
    service.ask(QUESTION)
    yield service
    service.stop()


def remote(service, *arguments):
    """A command against the service's admin API."""
    said = command(*arguments, REFRAIN_ADMIN_URL=service.admin)
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_stats(filled):
    table = remote(filled, "stats")
    rows = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    assert rows["default"][1:5] == ["2", "1", "0", "1"]
    assert rows["hr"][1:5] == ["1", "0", "0", "1"]
    assert rows["total"][1:7] == ["3", "1", "0", "2", "33.3", "%"]
    assert "p99" in table
    for arguments in (["--json"], ["--json", "--since", "15m"]):
        stats = json.loads(remote(filled, "stats", *arguments))
        assert stats["totals"]["requests"] == 3 and stats["totals"]["exact_hits"] == 1
        assert stats["namespaces"]["hr"]["misses"] == 1


def test_stats_of_a_window_that_cannot_be_read(filled):
    fails(command("stats", "--since", "soon", "--admin", filled.admin), "soon")


def test_no_service_to_ask():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    fails(command("stats", "--admin", f"http://127.0.0.1:{port}"), str(port), "is it running")


def test_evict(serve):
    """Each kind of eviction takes its own and leaves the rest; a dry run takes nothing."""
    service = serve('namespaces.hr.ttl = "1h"\n')
    hr = {"x-refrain-namespace": "hr"}
    vacation, rooms = "How do I request vacation?", "How do I book a meeting room?"
    service.wait_stored(
        service.ask(QUESTION),
        service.ask(rooms),
        service.ask(vacation, headers=hr | {"x-refrain-tags": "kb:hr"}),
        service.ask(BONUS, headers=hr),
    )

    def evicts(question, *arguments):
        assert remote(service, "evict", *arguments, "--dry-run") == "1 answers would go from memory, 1 from the store\n"
        assert question in [entry["question"] for entry in service.entries()]
        assert remote(service, "evict", *arguments) == "1 answers went from memory, 1 from the store\n"

    evicts(vacation, "--tag", "kb:hr")
    evicts(QUESTION, "--similar-to", PARAPHRASE, "--min-similarity", "0.92")
    assert sorted(entry["question"] for entry in service.entries()) == [rooms, BONUS]
    evicts(BONUS, "--namespace", "hr")
    assert service.ask(BONUS, headers=hr).headers["x-refrain-source"] == "upstream"
    assert service.ask(rooms).headers["x-refrain-source"] == "exact"
    assert remote(service, "evict", "--all") != ""
    assert service.ask(rooms).headers["x-refrain-source"] == "upstream"


def test_explain(filled, upstream):
    calls = len(upstream.desk("").calls)
    assert remote(filled, "explain", QUESTION).startswith("exact: ")
    said = remote(filled, "explain", PARAPHRASE)
    assert said.startswith("semantic: ") and QUESTION in said and "same" in said
    assert remote(filled, "explain", "What is the meaning of life?").startswith("miss: ")
    explained = json.loads(remote(filled, "explain", PARAPHRASE, "--json"))
    assert explained["outcome"] == "semantic" and explained["candidates"][0]["question"] == QUESTION
    assert len(upstream.desk("").calls) == calls
    assert filled.get("/stats")["totals"]["requests"] == 3


def test_explain_a_whole_request(filled, tmp_path):
    file = tmp_path / "request.json"
    body = {"model": "default", "messages": [{"role": "user", "content": BONUS}]}
    file.write_text(json.dumps(body))
    assert remote(filled, "explain", "--body", str(file), "--namespace", "hr").startswith("exact: ")
    file.write_text("{")
    fails(command("explain", "--body", str(file), "--admin", filled.admin), "request.json")


def test_eval_replays_a_stream():
    said = command("eval", "--replay", str(STREAM), "--json")
    assert said.returncode == 0, said.stderr
    report = json.loads(said.stdout)
    assert report["requests"] == len(STREAM.read_text().splitlines()) - 1
    assert report["errors"] == 0
    assert report["wrong_rate"] == 0
    # What comes again word by word, and much of what comes in other words.
    assert report["exact_rate"] == pytest.approx(6 / 60)
    assert report["hit_rate"] >= 0.25
    assert report["ideal_hit_rate"] == pytest.approx(32 / 60)


def test_eval_of_a_file_that_is_no_stream(tmp_path):
    file = tmp_path / "stream.tsv"
    file.write_text("question\nWhy?\n")
    fails(command("eval", "--replay", str(file)), str(file), "class")
    fails(command("eval", "--replay", "/nowhere.tsv"), "/nowhere.tsv")


ASKS = """
import json, os, sys, urllib.request
base = os.environ["OPENAI_BASE_URL"]
assert os.environ["ANTHROPIC_BASE_URL"] + "/v1" == base
body = {"model": "default", "messages": [{"role": "user", "content": "How do I reset my password?"}]}
for _ in range(2):
    request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    answer = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
    print(answer.headers["x-refrain-source"])
sys.exit(7)
"""


def test_run_asks_through_a_service_of_its_own(tmp_path):
    file = settings_file(tmp_path)
    said = command("run", "--config", file, "--", sys.executable, "-c", ASKS)
    assert said.returncode == 7, said.stderr
    assert said.stdout.split() == ["upstream", "exact"]
    assert said.stderr.splitlines()[-1].startswith("refrain: 2 requests, 1 exact and 0 semantic hits; saved ")


def test_run_uses_the_service_that_runs_already(serve):
    service = serve()
    file = service.folder / "same.toml"
    addresses = {"server": service.url, "admin": service.admin}
    file.write_text("".join(f'{name}.listen = "{url.removeprefix("http://")}"\n' for name, url in addresses.items()))
    said = command("run", "--config", str(file), "--", sys.executable, "-c", ASKS.replace("sys.exit(7)", ""))
    assert said.returncode == 0, said.stderr
    assert service.get("/stats")["totals"]["requests"] == 2


def test_a_command_that_is_not_there_is_named(tmp_path):
    fails(command("run", "--config", settings_file(tmp_path), "--", "no-such-command"), "no-such-command")
