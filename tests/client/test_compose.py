"""docker-compose.yml means something to Docker Compose. Nothing is started."""

import json
import os
import shutil
import subprocess

import pytest

from service import ROOT


def compose(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(
        ["docker", "compose", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


pytestmark = pytest.mark.skipif(
    shutil.which("docker") is None or compose("version").returncode != 0,
    reason="docker compose is not installed",
)


def services(*profile: str) -> dict:
    said = compose(*profile, "config", "--format", "json", REFRAIN_ADMIN_TOKEN="token")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["services"]


def test_alone_by_default():
    assert set(services()) == {"refrain"}


def test_a_cluster_by_profile():
    cluster = services("--profile", "cluster")
    assert {"qdrant", "refrain-a", "refrain-b"} <= set(cluster)
    for name in ("refrain-a", "refrain-b"):
        assert cluster[name]["environment"]["REFRAIN__STORE__URL"] == "http://qdrant:6334"


@pytest.mark.parametrize("profile", [[], ["--profile", "cluster"]])
def test_only_loopback_is_published_and_nothing_is_privileged(profile):
    for name, service in services(*profile).items():
        assert not service.get("privileged"), name
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", [])), name
        if name.startswith("refrain"):
            assert service["read_only"] and service["cap_drop"] == ["ALL"], name


def test_it_does_not_start_without_an_admin_token():
    said = compose("config", "--quiet")
    assert said.returncode != 0 and "set REFRAIN_ADMIN_TOKEN" in said.stderr
