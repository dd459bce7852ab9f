"""What the tests stand on: a compiled Refrain, a provider that obeys, and the real SDK."""

import os

import pytest
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI

from service import Service
from upstream import Upstream

# Everything here talks to loopback; a proxy of the machine has no business in it.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"


@pytest.fixture(scope="session")
def upstream():
    """The provider behind every service."""
    server = Upstream()
    yield server
    server.close()


@pytest.fixture
def desk(upstream):
    """This test's own API key at the provider. In forward mode that is also a tenant of its own."""
    return upstream.desk()


@pytest.fixture(scope="session")
def refrain(upstream, tmp_path_factory):
    """A service for all who need no settings of their own. Callers' keys keep the tests apart."""
    settings = upstream.settings() + 'auth.mode = "forward"\n'
    service = Service(tmp_path_factory.mktemp("refrain"), settings).start()
    yield service
    service.stop()


@pytest.fixture
def serve(tmp_path, upstream):
    """Starts services with settings of their own; at the end each must stop cleanly."""
    services = []

    def start(settings: str = "", **variables: str) -> Service:
        service = Service(tmp_path / "refrain", upstream.settings() + settings, **variables)
        services.append(service)
        return service.start()

    yield start
    for service in services:
        service.stop()


@pytest.fixture
def client(refrain, desk):
    """The SDK as an application would make it, with its retries."""
    with OpenAI(base_url=f"{refrain.url}/v1", api_key=desk.key) as client:
        yield client


@pytest.fixture
def claude(refrain, desk):
    """Anthropic's SDK, with its retries."""
    with Anthropic(base_url=refrain.url, api_key=desk.key) as client:
        yield client


@pytest.fixture
def async_client(refrain, desk):
    """The same without threads; closed with its event loop."""
    return AsyncOpenAI(base_url=f"{refrain.url}/v1", api_key=desk.key)
