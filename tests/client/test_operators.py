"""The night shift's commands: what is switched, who is ill, and taking hold of a breaker."""

import json

import pytest

from asking import QUESTION
from service import command
from test_cli import fails, remote


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["switch", "off"], "<TARGET>"),
        (["switch", "off", "provider:openai"], "--reason"),
        (["switch", "off", "openai", "--reason", "x"], "provider:NAME"),
        (["switch", "off", "feature:speed", "--reason", "x"], "write_back"),
        (["switch", "off", "target:openai", "--reason", "x"], "target:PROVIDER/MODEL"),
        (["switch", "off", "provider:openai", "--reason", "x", "--for", "soon"], "--for"),
        (["switch", "clear", "provider:openai", "--reason", "x", "--for", "2h"], "--for"),
        (["switch", "--audit", "off", "provider:openai", "--reason", "x"], "--audit"),
        (["switch", "toggle", "provider:openai"], "toggle"),
        (["breaker", "openai", "gpt-4o"], "<CONTROL>"),
        (["breaker", "openai", "gpt-4o", "open"], "forced_open"),
        (["stats", "--providers", "--since", "1h"], "--since"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(arguments, word):
    said = command(*arguments)
    assert said.returncode == 2, said.stderr
    assert word in said.stderr and said.stdout == ""


def test_switching_a_provider_off_and_back(serve):
    """By the user of this machine, for a while, and remembered after a restart."""
    service = serve()
    assert service.ask(QUESTION).is_success
    assert remote(service, "switch") == "nothing is switched: everything is as configured\n"
    name = service.get("/stats/providers")["targets"][0]["provider"]
    off = ["switch", "off", f"provider:{name}", "--reason", "answers nonsense", "--for", "2h"]
    said = command(*off, REFRAIN_ADMIN_URL=service.admin, SUDO_USER="", USER="ops")
    assert said.stdout.startswith(f"provider:{name} is off until 20") and said.stdout.count("\n") == 1, said

    refused = service.ask("When is the bonus paid?")
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0
    table = remote(service, "switch").splitlines()
    assert table[0].split() == ["switch", "until", "since", "by", "reason"]
    assert table[1].startswith(f"provider:{name}  off  20") and table[1].endswith("ops  answers nonsense")
    assert f"provider:{name}  off" in remote(service, "stats", "--providers")

    service.stop()
    service.start()
    assert service.ask("When is the bonus paid?").status_code == 503
    cleared = remote(service, "switch", "clear", f"provider:{name}", "--reason", "it answers again", "--by", "día 1")
    assert cleared == f"provider:{name} is as configured, from now on\n"
    assert service.ask("When is the bonus paid?").is_success
    trail = json.loads(remote(service, "switch", "--audit", "--json"))
    assert trail["switches"] == []
    assert [(change["by"], change["on"]) for change in trail["audit"]] == [("ops", False), ("día 1", None)]
    assert "cleared" in remote(service, "switch", "--audit")


def test_a_user_without_a_name_is_known_by_the_account(serve):
    service = serve()
    nameless = dict.fromkeys(["SUDO_USER", "USER", "LOGNAME", "USERNAME"], "")
    said = command("switch", "on", "feature:semantic", "--reason", "x", REFRAIN_ADMIN_URL=service.admin, **nameless)
    assert said.returncode == 0, said.stderr
    assert service.get("/admin/switches")["switches"][0]["by"]


def test_a_name_that_is_not_in_the_config(serve):
    service = serve()
    off = ["switch", "off", "provider:opnai", "--reason", "x", "--admin", service.admin]
    fails(command(*off), "404", '"opnai"', "openai, ")


def test_a_breaker_is_taken_and_let_go(serve):
    service = serve()
    fails(command("breaker", "openai", "gpt-4o", "isolated", "--admin", service.admin), "404", "nobody yet")
    assert service.ask(QUESTION).is_success
    target = service.get("/stats/providers")["targets"][0]
    names = [target["provider"], target["model"]]
    said = remote(service, "breaker", *names, "isolated")
    assert said == "the breaker of {}/{} is isolated, from now until a restart\n".format(*names)
    assert service.ask("When is the bonus paid?").status_code == 503
    said = remote(service, "breaker", *names, "automatic")
    assert said == "the breaker of {}/{} decides again: it is half_open\n".format(*names)
    assert service.ask("When is the bonus paid?").is_success


def test_how_the_providers_stand(serve):
    service = serve()
    assert "no provider was asked since the start" in remote(service, "stats", "--providers")
    service.ask(QUESTION)
    table = remote(service, "stats", "--providers")
    for word in ("in flight", "limit", "keys", "errors (1m)", "first content p50", "alerts", "closed", "none"):
        assert word in table, table
    report = json.loads(remote(service, "stats", "--providers", "--json"))
    assert report["targets"][0]["since_start"]["answers"] == 1
