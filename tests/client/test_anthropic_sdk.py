"""Anthropic's SDK asks through Refrain as it would ask Anthropic, whoever answers."""

from contextlib import nullcontext

import anthropic
import openai
import pytest

from asking import PARAPHRASE, QUESTION, asked, raw
from service import HTTP, wait_until
from upstream import USAGE, Upstream, answer_for

NATIVE, CROSSED = "claude-any", "default"
BOTH = pytest.mark.parametrize("model", [NATIVE, CROSSED])
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def said(question, model=NATIVE, **fields):
    """The arguments of `create` for one question."""
    return {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": question}]} | fields


def told(client, question, model=NATIVE, **fields):
    """The response with its headers, and what the SDK makes of it."""
    response = client.messages.with_raw_response.create(**said(question, model, **fields))
    return response.headers, response.parse()


def essence(message):
    """What a hit has in common with the miss it repeats."""
    blocks = [block.to_dict() for block in message.content]
    usage = (message.usage.input_tokens, message.usage.output_tokens)
    return message.role, blocks, message.stop_reason, usage, message.model


@BOTH
def test_the_same_request_again_is_an_exact_hit(claude, desk, model):
    miss_headers, miss = told(claude, QUESTION, model)
    hit_headers, hit = told(claude, QUESTION, model)
    assert miss.content[0].text == answer_for(QUESTION)
    assert (miss.stop_reason, miss.usage.output_tokens) == ("end_turn", USAGE["completion_tokens"])
    assert essence(hit) == essence(miss)
    assert hit.id != miss.id and hit.id.startswith("msg_")
    assert miss_headers["cache-status"] == "refrain; fwd=miss; stored"
    assert hit_headers["cache-status"].endswith("; detail=exact")
    assert hit_headers["request-id"] == hit._request_id
    assert len(desk.calls) == 1


@BOTH
def test_the_same_question_in_other_words_is_a_semantic_hit(claude, desk, refrain, model):
    headers, miss = told(claude, QUESTION, model)
    refrain.wait_entry(headers["x-refrain-entry"])
    headers, hit = told(claude, PARAPHRASE, model)
    assert headers["cache-status"].endswith("; detail=semantic")
    assert essence(hit) == essence(miss)
    assert len(desk.calls) == 1


@BOTH
def test_streams_hit_and_miss_look_alike(claude, desk, model):
    finals = []
    for _ in range(2):
        with claude.messages.stream(**said(QUESTION, model)) as stream:
            kinds = [event.type for event in stream]
            finals.append(stream.get_final_message())
        assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
        assert "content_block_start" in kinds and "content_block_stop" in kinds
    miss, hit = finals
    assert essence(hit) == essence(miss)
    assert miss.content[0].text == answer_for(QUESTION) and hit.id != miss.id
    assert len(desk.calls) == 1
    _, whole = told(claude, QUESTION, model)
    assert essence(whole) == essence(miss)
    assert len(desk.calls) == 1


def test_one_stored_answer_serves_both_dialects(claude, client, desk):
    told(claude, QUESTION, CROSSED, system="Be brief.")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    response, completion = raw(client, QUESTION, messages=messages, max_tokens=100)
    assert response.headers["cache-status"].endswith("; detail=exact")
    assert completion.choices[0].message.content == answer_for(QUESTION)
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage.completion_tokens == USAGE["completion_tokens"]
    assert len(desk.calls) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_openais_client_is_served_by_anthropic(client, desk, stream):
    fields = asked(QUESTION, model=NATIVE, stream=stream)
    if stream:
        chunks = list(client.chat.completions.create(**fields))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    else:
        text = client.chat.completions.create(**fields).choices[0].message.content
    assert text == answer_for(QUESTION)
    call = desk.calls[0]
    assert call.path == "/v1/messages" and call.headers["anthropic-version"] == "2023-06-01"
    assert call.body["messages"] == [{"role": "user", "content": QUESTION}] and call.body["max_tokens"] > 0


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_tool_use_passes_and_is_not_kept(claude, desk, model, stream):
    def respond(exchange):
        if model == NATIVE and not stream:
            use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}}
            return exchange.blocks([use], "tool_use")
        if model == NATIVE:
            exchange.begin_stream()
            exchange.begin_block(0, {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}})
            for part in ('{"city": ', '"Basel"}'):
                exchange.grow(0, {"type": "input_json_delta", "partial_json": part})
            exchange.end_block(0)
            return exchange.end_stream("tool_use")
        call = {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Basel"}'}}
        if not stream:
            return exchange.whole({"content": None, "tool_calls": [call]}, "tool_calls")
        exchange.begin_stream()
        exchange.delta({"tool_calls": [{"index": 0} | call]})
        return exchange.end_stream("tool_calls")

    desk.respond = respond
    for count in (1, 2):
        fields = said("Is it raining in Basel?", model, tools=[TOOL])
        if stream:
            with claude.messages.stream(**fields) as events:
                message = events.get_final_message()
        else:
            message = claude.messages.create(**fields)
        assert message.stop_reason == "tool_use"
        used = message.content[0]
        assert (used.type, used.id, used.name, used.input) == ("tool_use", "toolu_1", "weather", {"city": "Basel"})
        assert len(desk.calls) == count


@BOTH
def test_a_tools_result_goes_on(claude, desk, model):
    messages = [
        {"role": "user", "content": "Is it raining in Basel?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}]},
    ]

    def respond(exchange):
        exchange.whole({"content": "Yes."})

    desk.respond = respond
    message = claude.messages.create(**said("", model, messages=messages, tools=[TOOL]))
    assert message.content[0].text == "Yes."
    sent = desk.calls[0].body["messages"]
    if model == NATIVE:
        assert sent == messages
    else:
        assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "toolu_1" and sent[2]["role"] == "tool"


def test_thoughts_pass_and_are_not_kept(claude, desk):
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "text", "text": "Yes."},
    ]
    desk.respond = lambda exchange: exchange.blocks(blocks)
    for count in (1, 2):
        message = claude.messages.create(
            **said(QUESTION, max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024})
        )
        assert [block.to_dict() for block in message.content] == blocks
        assert len(desk.calls) == count


def test_what_another_dialect_cannot_say_is_refused_by_name(claude, desk):
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(
            **said(QUESTION, CROSSED, max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024})
        )
    assert "thinking" in caught.value.body["error"]["message"]
    assert not desk.calls


def test_the_body_passes_byte_for_byte(refrain, desk):
    body = b'{ "max_tokens":7,"model":"claude-fake" ,\n "messages":[{"role":"user","content":"Gr\\u00fc\xc3\x9f dich"}], "x_new": 1.50 }'
    headers = {"x-api-key": desk.key, "anthropic-version": "2023-06-01", "anthropic-beta": "one-1,two-2"}
    response = HTTP.post(f"{refrain.url}/v1/messages?beta=true", content=body, headers=headers)
    assert response.is_success, response.text
    call = desk.calls[0]
    assert call.raw == body
    assert (call.headers["anthropic-version"], call.headers["anthropic-beta"]) == ("2023-06-01", "one-1,two-2")
    assert call.headers["x-api-key"] == desk.key and "authorization" not in call.headers


def test_counts_of_tokens_pass_through(claude, desk):
    desk.respond = lambda exchange: exchange.json(200, {"input_tokens": 14})
    for count in (1, 2):
        counted = claude.messages.count_tokens(model=NATIVE, messages=[{"role": "user", "content": QUESTION}])
        assert counted.input_tokens == 14
        assert len(desk.calls) == count
    assert desk.calls[0].path == "/v1/messages/count_tokens"
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.count_tokens(model=CROSSED, messages=[{"role": "user", "content": QUESTION}])


@pytest.mark.parametrize(
    ("status", "kind", "exception"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
    ],
)
@pytest.mark.parametrize("model", [NATIVE, CROSSED])
def test_the_providers_word_on_the_request_passes(claude, desk, status, kind, exception, model):
    desk.respond = lambda exchange: exchange.refuse(status, "the provider's own words")
    with pytest.raises(exception) as caught:
        claude.messages.create(**said(QUESTION, model))
    body = caught.value.body
    assert body["type"] == "error" and body["error"]["message"] == "the provider's own words"
    assert body["error"]["type"] == (kind if model == CROSSED else "invalid_request_error")


def test_our_own_errors_are_in_its_words(claude, refrain, desk):
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(**said(QUESTION) | {"messages": []})
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    response = HTTP.post(f"{refrain.url}/v1/messages", json=said(QUESTION))
    assert (response.status_code, response.json()["error"]["type"]) == (401, "authentication_error")
    response = HTTP.get(f"{refrain.url}/v1/messages")
    assert (response.status_code, response.json()["type"]) == (405, "error")


def test_an_overload_is_tried_again_and_then_told(claude, desk):
    desk.respond = lambda exchange: exchange.refuse(529, "Overloaded", "overloaded_error")
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude.with_options(max_retries=0).messages.create(**said(QUESTION))
    assert caught.value.status_code == 503
    assert caught.value.body["error"]["type"] == "overloaded_error"


@BOTH
def test_a_stream_that_breaks_ends_with_an_error(claude, desk, model):
    def respond(exchange):
        exchange.begin_stream()
        exchange.say("The an")

    desk.respond = respond
    with pytest.raises(anthropic.APIStatusError):
        with claude.with_options(max_retries=0).messages.stream(**said(QUESTION, model)) as stream:
            for _ in stream:
                pass
    desk.respond = lambda exchange: exchange.whole({"content": "whole"})
    assert claude.messages.create(**said(QUESTION, model)).content[0].text == "whole", "nothing was kept"


def test_models_list(claude):
    page = claude.models.list()
    assert "default" in [model.id for model in page] and not page.has_next_page()


@pytest.fixture
def elsewhere():
    """A provider at another host than the usual one."""
    server = Upstream()
    yield server
    server.close()


def test_a_callers_key_goes_to_one_vendor_only(serve, desk, elsewhere):
    settings = 'auth.mode = "forward"\n' + "".join(
        f'providers.other.{name} = "{value}"\n' for name, value in (("kind", "openai"), ("url", elsewhere.url))
    )
    service = serve(settings + 'models.both.targets = [{ provider = "claude" }, { provider = "other" }]\n')
    desk.respond = lambda exchange: exchange.refuse(401, "no such key", "authentication_error")
    with anthropic.Anthropic(base_url=service.url, api_key=desk.key, max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError):
            client.messages.create(**said(QUESTION, "both"))
    assert len(desk.calls) == 1 and not elsewhere.desk(desk.key).calls


def test_what_cannot_be_said_is_not_answered_by_rules(serve, client):
    service = serve('models.helped.targets = [{ provider = "claude" }, { provider = "rules", model = "faq" }]\n')
    with client.with_options(base_url=f"{service.url}/v1", max_retries=0) as own:
        with pytest.raises(openai.BadRequestError) as caught:
            own.chat.completions.create(**asked(QUESTION, model="helped", seed=1))
    assert "seed" in caught.value.body["message"]


def test_a_limit_on_counts_is_none_on_answers(serve, upstream, tmp_path):
    key = tmp_path / "key"
    desk = upstream.desk()
    key.write_text(desk.key)
    service = serve(f'providers.claude.api_key = "file:{key}"\n')
    desk.respond = lambda exchange: (
        exchange.refuse(429, "slow down", "rate_limit_error", retry_after="60")
        if exchange.path.endswith("count_tokens")
        else exchange.whole({"content": "here"})
    )
    with anthropic.Anthropic(base_url=service.url, api_key="any", max_retries=0) as client:
        with pytest.raises(anthropic.RateLimitError):
            client.messages.count_tokens(model=NATIVE, messages=[{"role": "user", "content": QUESTION}])
        assert client.messages.create(**said(QUESTION)).content[0].text == "here"


@pytest.mark.parametrize("stream", [False, True])
def test_what_tools_cost_is_counted(serve, desk, stream):
    service = serve('auth.mode = "forward"\n')
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}}

    def respond(exchange):
        if not stream:
            return exchange.blocks([use], "tool_use")
        exchange.begin_stream()
        exchange.begin_block(0, use)
        exchange.end_block(0)
        return exchange.end_stream("tool_use")

    desk.respond = respond
    with anthropic.Anthropic(base_url=service.url, api_key=desk.key) as client:
        with client.messages.stream(**said(QUESTION, tools=[TOOL])) if stream else nullcontext() as events:
            message = events.get_final_message() if stream else client.messages.create(**said(QUESTION, tools=[TOOL]))
    assert message.stop_reason == "tool_use"
    spent = wait_until(lambda: service.get("/stats")["totals"]["tokens_spent"]["completion"], "the count")
    assert spent == USAGE["completion_tokens"]


@pytest.mark.parametrize(
    ("headers", "word"),
    [({"anthropic-beta": "ctx-1m,é".encode()}, "ASCII"), ([("anthropic-version", "2023-06-01"), ("anthropic-version", "2026-10-21")], "once")],
)
def test_headers_that_could_be_misread_are_refused(refrain, desk, headers, word):
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    response = HTTP.post(f"{refrain.url}/v1/messages", json=said(QUESTION), headers=[("x-api-key", desk.key), *pairs])
    assert response.status_code == 400 and word in response.json()["error"]["message"], response.text


def test_whose_workspace_it_is_reaches_anthropic_and_tells_answers_apart(claude, client, desk):
    for workspace in ("one", "one", "two"):
        claude.messages.create(**said(QUESTION), extra_headers={"anthropic-workspace-id": workspace})
    assert [call.headers["anthropic-workspace-id"] for call in desk.calls] == ["one", "two"]
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.create(**said(QUESTION, CROSSED), extra_headers={"anthropic-workspace-id": "one"})


def test_a_messages_request_is_explained(claude, refrain, desk):
    headers, _ = told(claude, QUESTION, system="Be brief.")
    entry = refrain.get(f"/admin/entries/{headers['x-refrain-entry']}")
    explained = refrain.post(
        "/admin/explain?api=messages", said(QUESTION, system="Be brief."), {"x-refrain-tenant": entry["tenant"]}
    )
    assert (explained["outcome"], explained["id"]) == ("exact", entry["id"])
