"""What goes wrong arrives as the SDK's own exceptions, and the SDK retries only what may help."""

import threading

import openai
import pytest

from asking import STREAM, QUESTION, asked, raw, text_of
from service import Service


def refusing(status, message="no", **headers):
    return lambda exchange: exchange.refuse(status, message, **headers)


@pytest.fixture
def open_service(upstream, tmp_path):
    """A service with a key of its own, little patience and small limits."""
    # "*" is left with the provider "openai", which has no key here: other models have nobody.
    settings = upstream.settings(models=["default"], api_key="env:PROVIDER_KEY")
    settings += 'upstream.total_timeout = "400ms"\nserver.max_body = "4 KiB"\n'
    service = Service(tmp_path / "open", settings, PROVIDER_KEY="sk-of-the-service").start()
    yield service
    service.stop()


@pytest.fixture
def own_desk(upstream):
    """The desk of the open service's key, as it was before the test."""
    desk = upstream.desk("sk-of-the-service")
    desk.calls.clear()
    usual = desk.respond
    yield desk
    desk.respond = usual


@pytest.fixture
def open_client(open_service):
    with openai.OpenAI(base_url=f"{open_service.url}/v1", api_key="anything") as client:
        yield client


@pytest.mark.parametrize(
    ("status", "exception"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_providers_word_on_the_request_passes_and_is_final(client, desk, status, exception, stream):
    desk.respond = refusing(status, "the provider's own words")
    with pytest.raises(exception) as caught:
        client.chat.completions.create(**asked(QUESTION, stream=stream))
    assert caught.value.body["message"] == "the provider's own words"
    assert caught.value.status_code == status
    assert len(desk.calls) == 1


def test_a_rate_limit_passes_with_its_retry_after(client, desk):
    desk.respond = refusing(429, "secret detail", retry_after="7")
    with pytest.raises(openai.RateLimitError) as caught:
        client.with_options(max_retries=0).chat.completions.create(**asked(QUESTION))
    assert caught.value.response.headers["retry-after"] == "7"
    assert "x-should-retry" not in caught.value.response.headers
    assert "secret detail" not in str(caught.value)


def test_the_sdk_outlasts_a_rate_limit(client, desk):
    def respond(exchange):
        if len(desk.calls) == 1:
            return exchange.refuse(429, "later", retry_after="1")
        return exchange.whole({"content": "now"})

    desk.respond = respond
    _, completion = raw(client, QUESTION)
    assert completion.choices[0].message.content == "now"
    assert len(desk.calls) == 2


@pytest.mark.parametrize("status", [500, 502])
def test_a_failed_provider_is_not_asked_again_by_the_sdk(client, desk, status):
    desk.respond = refusing(status, "a stack trace")
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(**asked(QUESTION))
    assert caught.value.status_code == 502
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert "a stack trace" not in str(caught.value)
    # Once, and once more while the budget of retries allows it; the SDK would make it three times that.
    assert 1 <= len(desk.calls) <= 2


def test_a_full_provider_says_when_to_come_again(client, desk):
    desk.respond = refusing(503, "a stack trace")
    with pytest.raises(openai.InternalServerError) as caught:
        client.with_options(max_retries=0).chat.completions.create(**asked(QUESTION))
    assert caught.value.status_code == 503
    assert caught.value.response.headers["retry-after"] == "5"
    assert "x-should-retry" not in caught.value.response.headers
    assert "a stack trace" not in str(caught.value)


def test_a_failure_is_not_kept(client, desk):
    usual, desk.respond = desk.respond, refusing(500)
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**asked(QUESTION))
    desk.respond = usual
    response, _ = raw(client, QUESTION)
    assert response.headers["cache-status"] == "refrain; fwd=miss; stored"


def test_nonsense_from_the_provider_is_a_502(client, desk):
    desk.respond = lambda exchange: exchange.json(200, {"hello": "world"})
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(**asked(QUESTION))
    assert caught.value.status_code == 502
    assert len(desk.calls) == 1


def test_the_services_own_key_is_not_the_callers_fault(open_client, own_desk):
    own_desk.respond = refusing(401, "Incorrect API key provided: sk-of-****vice")
    with pytest.raises(openai.InternalServerError) as caught:
        open_client.chat.completions.create(**asked("Who pays?"))
    assert caught.value.status_code == 502
    assert caught.value.code == "provider_credential"
    assert "sk-" not in str(caught.value)
    assert len(own_desk.calls) == 1


def test_a_model_that_nobody_serves(open_client, own_desk):
    with pytest.raises(openai.NotFoundError) as caught:
        open_client.chat.completions.create(**asked(QUESTION) | {"model": "gpt-99"})
    assert caught.value.code == "model_not_found" and caught.value.param == "model"
    assert "gpt-99" in str(caught.value)
    assert own_desk.calls == []


def test_a_slow_provider_is_a_504_and_is_let_go(open_client, own_desk):
    left = threading.Event()
    own_desk.respond = lambda exchange: exchange.caller_left() and left.set()
    with pytest.raises(openai.InternalServerError) as caught:
        open_client.chat.completions.create(**asked("Are you slow?"))
    assert caught.value.status_code == 504
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert left.wait(10)
    assert len(own_desk.calls) == 1


def test_only_if_cached_is_not_retried(client, desk):
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(**asked(QUESTION, extra_headers={"cache-control": "only-if-cached"}))
    assert caught.value.status_code == 504
    assert caught.value.code == "only_if_cached"
    assert desk.calls == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"content": "no role"}]}, "role"),
        ({"model": 7}, "model"),
        ({"model": ""}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"extra_headers": {"x-refrain-ttl": "soon"}}, "x-refrain-ttl"),
        ({"extra_headers": {"x-refrain-namespace": "nowhere"}}, "nowhere"),
    ],
)
def test_a_bad_request_says_what_is_wrong(client, desk, fields, words):
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as caught:
        client.chat.completions.create(**asked(QUESTION) | fields)
    assert words in caught.value.body["message"] or words in str(caught.value.param)
    assert caught.value.type == "invalid_request_error"
    assert desk.calls == []


def test_a_body_over_the_limit(open_client, own_desk):
    with pytest.raises(openai.APIStatusError) as caught:
        open_client.chat.completions.create(**asked("x" * 5000))
    assert caught.value.status_code == 413
    assert "4096" in str(caught.value)
    assert own_desk.calls == []


def test_without_a_key_the_caller_is_told_where_it_belongs(refrain):
    response = refrain.ask(QUESTION)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in response.json()["error"]["message"]


def test_a_stream_that_breaks_is_an_error_and_is_not_kept(client, desk):
    def respond(exchange):
        exchange.begin_stream()
        exchange.say("Half of ", "the ans")

    usual, desk.respond = desk.respond, respond
    chunks = []
    with pytest.raises(openai.APIError):
        for chunk in client.chat.completions.create(**asked(QUESTION, stream=True)):
            chunks.append(chunk)
    assert text_of(chunks) == "Half of the ans"
    desk.respond = usual
    response, _ = raw(client, QUESTION)
    assert response.headers["cache-status"] == "refrain; fwd=miss; stored"
    assert len(desk.calls) == 2


def test_the_sdks_own_timeout_cancels_the_call(client, desk):
    left = threading.Event()
    desk.respond = lambda exchange: exchange.caller_left() and left.set()
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3, max_retries=0).chat.completions.create(**asked(QUESTION))
    assert left.wait(10)


def test_who_leaves_a_stream_cancels_it(client, desk):
    left = threading.Event()

    def respond(exchange):
        exchange.begin_stream()
        exchange.say("and so on, ")
        if exchange.caller_left():
            left.set()

    desk.respond = respond
    with client.chat.completions.create(**asked(QUESTION, stream=True)) as stream:
        assert text_of([next(stream), next(stream)]) == "and so on, "
    assert left.wait(10)


def test_who_leaves_a_stream_does_not_cancel_it_for_others(client, desk, refrain):
    go_on = threading.Event()

    def respond(exchange):
        exchange.begin_stream()
        exchange.say("The first half, ")
        assert go_on.wait(10)
        exchange.say("and the second.")
        exchange.end_stream()

    desk.respond = respond
    with client.chat.completions.create(**asked(QUESTION, **STREAM)) as leader:
        assert text_of([next(leader), next(leader)]) == "The first half, "
        response, follower = raw(client, QUESTION, **STREAM)
        assert "; collapsed" in response.headers["cache-status"]
        heard = [next(follower), next(follower)]
    go_on.set()
    assert text_of([*heard, *follower]) == "The first half, and the second."
    assert len(desk.calls) == 1
    response, _ = raw(client, QUESTION)
    assert response.headers["x-refrain-source"] == "exact"
