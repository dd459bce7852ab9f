"""Secrets go where they belong and nowhere else; questions stay out of the log unless asked for.

Canaries: each secret is a string that occurs nowhere else, and whatever leaves the process is
searched for it.
"""

import hashlib

import httpx2 as httpx
import pytest

from service import HTTP, Service, command

PROVIDER_KEY = "sk-canary-provider-5f2a"
ADMIN_TOKEN = "canary-admin-77c1"
CALLER_KEY = "sk-canary-caller-90be"
STRANGER_KEY = "sk-canary-stranger-13d4"
CANARIES = [PROVIDER_KEY, ADMIN_TOKEN, CALLER_KEY, STRANGER_KEY]

QUESTION = "Where do canaries sing at noon?"


def everything_said(service: Service) -> dict[str, str]:
    """What the admin API says, by path."""
    get = {path: service.get_text(path) for path in ("/stats", "/metrics", "/admin/entries", "/healthz", "/readyz")}
    for entry in service.entries():
        get[entry["id"]] = service.get_text(f"/admin/entries/{entry['id']}")
    body = {"model": "default", "messages": [{"role": "user", "content": QUESTION}]}
    get["explain"] = str(service.post("/admin/explain", body))
    get["evict"] = str(service.post("/admin/evict", {"all": True, "dry_run": True}))
    return get


def errors(service: Service) -> dict[str, str]:
    """Bodies and headers of failures, each provoked with secrets in the request."""

    def told(response: httpx.Response) -> str:
        assert response.is_error
        return f"{response.headers} {response.text}"

    chat = f"{service.url}/v1/chat/completions"
    caller = {"authorization": f"Bearer {CALLER_KEY}"}
    stranger = {"authorization": f"Bearer {STRANGER_KEY}"}
    return {
        "refused": told(service.ask("Please refuse this.", key=CALLER_KEY)),
        "failed": told(service.ask("Please fail on this.", key=CALLER_KEY)),
        "not json": told(HTTP.post(chat, content=b"{", headers=caller)),
        "basic": told(HTTP.post(chat, json={}, headers={"authorization": f"Basic {STRANGER_KEY}"})),
        "two keys": told(HTTP.post(chat, json={}, headers=caller | {"x-api-key": STRANGER_KEY})),
        "no route": told(HTTP.get(f"{service.url}/v1/nothing", headers=caller)),
        "admin": told(HTTP.get(f"{service.admin}/stats", headers=stranger)),
    }


def respond(exchange):
    """A provider that is careless with the keys it gets."""
    if "refuse" in exchange.question:
        return exchange.refuse(401, f"Incorrect API key provided: {exchange.headers['authorization']}")
    if "fail" in exchange.question:
        return exchange.refuse(500, f"request headers were {exchange.headers}")
    return exchange.whole({"content": "On the roof."})


@pytest.mark.parametrize("mode", ["open", "keys", "forward"])
def test_secrets_never_leave(serve, upstream, tmp_path, mode):
    token = tmp_path / "admin-token"
    token.write_text(f"{ADMIN_TOKEN}\n")
    digest = hashlib.sha256(CALLER_KEY.encode()).hexdigest()
    settings = (
        f'providers.fake.api_key = "env:PROVIDER_KEY"\nadmin.token = "file:{token}"\nlog.filter = "trace"\n'
        f'auth.mode = "{mode}"\nauth.keys.alice.sha256 = "{digest}"\n'
    )
    service = serve(settings, token=ADMIN_TOKEN, PROVIDER_KEY=PROVIDER_KEY)
    expected = CALLER_KEY if mode == "forward" else PROVIDER_KEY
    desk = upstream.desk(expected)
    desk.calls.clear()
    desk.respond = respond

    miss = service.ask(QUESTION, key=CALLER_KEY)
    hit = service.ask(QUESTION, key=CALLER_KEY)
    assert hit.headers["x-refrain-source"] == "exact"
    service.wait_stored(miss)
    # The secret did arrive where it belongs.
    assert desk.calls[0].headers["authorization"] == f"Bearer {expected}"

    said = errors(service) | everything_said(service)
    if mode == "forward":
        # The provider's word on the caller's own key is for the caller, whatever it repeats.
        del said["refused"]
    service.stop()
    said["stdout"] = service.said()
    said["log"] = service.log()
    said["answers"] = f"{miss.headers} {miss.text} {hit.headers} {hit.text}"
    assert '"level":"TRACE"' in said["log"]
    for place, text in said.items():
        for canary in CANARIES:
            assert canary not in text, f"{canary} in {place}"
    content = b"".join(file.read_bytes() for file in service.data.rglob("*") if file.is_file())
    assert b"On the roof." in content
    for canary in CANARIES:
        assert canary.encode() not in content


@pytest.mark.parametrize("name", ["check", "serve"])
def test_a_secret_in_the_config_is_refused_and_not_repeated(tmp_path, name):
    for section, setting in (("admin.token", "admin.token"), ("providers.openai", "providers.openai.api_key")):
        file = tmp_path / "refrain.toml"
        file.write_text(f'{setting} = "{PROVIDER_KEY}"\n')
        said = command(name, "--config", str(file))
        assert said.returncode == 1
        assert section in said.stdout + said.stderr and "env:NAME" in said.stdout + said.stderr
        assert PROVIDER_KEY not in said.stdout + said.stderr


@pytest.mark.parametrize("prompts", [False, True])
def test_questions_are_in_the_log_only_when_asked_for(serve, prompts):
    service = serve(f"log.prompts = {str(prompts).lower()}\n")
    response = service.ask(QUESTION)
    service.ask("Where do canaries sing in the morning?")
    service.wait_stored(response)
    service.post("/admin/evict", {"similar_to": QUESTION, "min_similarity": 0.9})
    service.stop()
    assert ("canaries" in service.log()) == prompts
    assert '"message":"chat"' in service.log()
