"""The OpenAI SDK asks through Refrain as it would ask OpenAI."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel

from asking import STREAM, PARAPHRASE, QUESTION, asked, raw, text_of
from upstream import USAGE, answer_for

def essence(completion):
    """What a hit has in common with the miss it repeats."""
    choice, usage = completion.choices[0], completion.usage
    counts = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    return choice.message.role, choice.message.content, choice.finish_reason, counts, completion.model


def test_the_same_request_again_is_an_exact_hit(client, desk):
    miss_response, miss = raw(client, QUESTION)
    hit_response, hit = raw(client, QUESTION)
    assert miss.choices[0].message.content == answer_for(QUESTION)
    assert miss.usage.total_tokens == USAGE["total_tokens"]
    assert essence(hit) == essence(miss)
    assert hit.id != miss.id and hit.id.startswith("chatcmpl-")
    assert len(desk.calls) == 1
    assert desk.calls[0].body["model"] == "fake-large"

    headers = miss_response.headers
    assert headers["cache-status"] == "refrain; fwd=miss; stored"
    assert headers["x-refrain-source"] == "upstream"
    assert headers["x-refrain-provider"] == "fake"
    assert headers["x-refrain-model"] == "fake-large"
    assert headers["x-refrain-attempts"] == "1"
    assert "age" not in headers

    headers = hit_response.headers
    assert headers["cache-status"].startswith("refrain; hit; ttl=86") and headers["cache-status"].endswith("exact")
    assert headers["x-refrain-source"] == "exact"
    assert headers["x-refrain-entry"] == miss_response.headers["x-refrain-entry"]
    assert 0 <= int(headers["age"]) < 60


def test_the_same_question_in_other_words_is_a_semantic_hit(client, desk, refrain):
    miss_response, miss = raw(client, QUESTION)
    refrain.wait_stored(miss_response)
    hit_response, hit = raw(client, PARAPHRASE)
    assert hit_response.headers["cache-status"].endswith("; detail=semantic")
    assert hit_response.headers["x-refrain-entry"] == miss_response.headers["x-refrain-entry"]
    assert 0.92 <= float(hit_response.headers["x-refrain-similarity"]) < 1
    assert essence(hit) == essence(miss) and hit.id != miss.id
    assert len(desk.calls) == 1


def test_another_number_is_another_question(client, desk, refrain):
    response, _ = raw(client, "How many vacation days do I get after 5 years?")
    refrain.wait_stored(response)
    other, _ = raw(client, "How many vacation days do I get after 15 years?")
    assert other.headers["x-refrain-source"] == "upstream"
    assert len(desk.calls) == 2


def test_another_key_is_another_tenant(client, desk, upstream, refrain):
    raw(client, QUESTION)
    stranger = client.with_options(api_key=upstream.desk().key)
    response, _ = raw(stranger, QUESTION)
    assert response.headers["cache-status"].startswith("refrain; fwd=miss")


@pytest.mark.parametrize("include_usage", [False, True])
def test_streams_hit_and_miss_look_alike(client, desk, include_usage):
    fields = {"stream": True}
    if include_usage:
        fields["stream_options"] = {"include_usage": True}
    miss = list(client.chat.completions.create(**asked(QUESTION, **fields)))
    hit = list(client.chat.completions.create(**asked(QUESTION, **fields)))
    assert len(desk.calls) == 1
    for chunks in (miss, hit):
        assert text_of(chunks) == answer_for(QUESTION)
        assert chunks[0].choices[0].delta.role == "assistant"
        assert len({chunk.id for chunk in chunks}) == 1
        ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
        assert ends == ["stop"]
        usages = [chunk.usage.total_tokens for chunk in chunks if chunk.usage]
        assert usages == ([USAGE["total_tokens"]] if include_usage else [])
    assert miss[0].id != hit[0].id


@pytest.mark.parametrize("first_streams", [False, True])
def test_a_stream_and_a_whole_answer_are_one_entry(client, desk, first_streams):
    def ask(stream):
        if not stream:
            return client.chat.completions.create(**asked(QUESTION)).choices[0].message.content
        return text_of(client.chat.completions.create(**asked(QUESTION, **STREAM)))

    assert ask(first_streams) == ask(not first_streams) == answer_for(QUESTION)
    assert len(desk.calls) == 1


def test_a_streamed_semantic_hit(client, desk, refrain):
    response, _ = raw(client, QUESTION)
    refrain.wait_stored(response)
    response, chunks = raw(client, PARAPHRASE, stream=True)
    assert response.headers["cache-status"].endswith("; detail=semantic")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert text_of(chunks) == answer_for(QUESTION)
    assert len(desk.calls) == 1


def test_the_async_sdk(async_client, desk):
    async def ask():
        async with async_client as client:
            whole = await client.chat.completions.create(**asked(QUESTION))
            stream = await client.chat.completions.create(**asked(QUESTION, stream=True))
            return whole.choices[0].message.content, text_of([chunk async for chunk in stream])

    assert asyncio.run(ask()) == (answer_for(QUESTION), answer_for(QUESTION))
    assert len(desk.calls) == 1


def test_the_sdks_stream_helper_takes_a_hit(client, desk):
    for _ in range(2):
        with client.chat.completions.stream(**asked(QUESTION)) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            completion = stream.get_final_completion()
        assert "".join(deltas) == completion.choices[0].message.content == answer_for(QUESTION)
    assert len(desk.calls) == 1


def test_structured_answers_are_parsed_from_a_hit(client, desk):
    class City(BaseModel):
        name: str
        population: int

    desk.respond = lambda exchange: exchange.whole({"content": '{"name": "Basel", "population": 177000}'})
    fields = asked("Describe Basel.", response_format=City)
    miss, hit = (client.chat.completions.parse(**fields).choices[0].message.parsed for _ in range(2))
    assert miss == hit == City(name="Basel", population=177000)
    assert len(desk.calls) == 1
    assert desk.calls[0].body["response_format"]["json_schema"]["name"] == "City"


TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Basel"}'}}


def test_tool_calls_pass_and_are_not_kept(client, desk):
    desk.respond = lambda exchange: exchange.whole({"content": None, "tool_calls": [TOOL_CALL]}, "tool_calls")
    for count in (1, 2):
        response, completion = raw(client, "Is it raining in Basel?", tools=[TOOL])
        assert response.headers["cache-status"] == "refrain; fwd=miss"
        assert completion.choices[0].finish_reason == "tool_calls"
        assert completion.choices[0].message.tool_calls[0].to_dict() == TOOL_CALL
        assert len(desk.calls) == count
    assert desk.calls[0].body["tools"] == [TOOL]


def test_streamed_tool_calls_pass_and_are_not_kept(client, desk):
    def respond(exchange):
        exchange.begin_stream()
        head = TOOL_CALL | {"index": 0, "function": {"name": "weather", "arguments": ""}}
        exchange.delta({"tool_calls": [head]})
        for part in ('{"city": ', '"Basel"}'):
            exchange.delta({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        exchange.end_stream("tool_calls")

    desk.respond = respond
    for count in (1, 2):
        with client.chat.completions.stream(**asked("Is it raining in Basel?", tools=[TOOL])) as stream:
            called = stream.get_final_completion().choices[0].message.tool_calls[0]
        assert (called.function.name, called.function.arguments) == ("weather", '{"city": "Basel"}')
        assert len(desk.calls) == count


def test_the_same_words_after_another_conversation_are_another_question(client, desk):
    def ask(*earlier):
        messages = [{"role": role, "content": content} for role, content in earlier]
        client.chat.completions.create(model="default", messages=[*messages, {"role": "user", "content": "Why?"}])
        return len(desk.calls)

    talk = [("system", "Be brief."), ("user", "Is the sky blue?"), ("assistant", "Yes.")]
    assert ask(*talk) == 1
    assert ask(*talk) == 1
    assert ask(talk[0], ("user", "Is the sea blue?"), talk[2]) == 2
    assert ask(("system", "Be verbose."), *talk[1:]) == 3
    assert desk.calls[0].body["messages"][2] == {"role": "assistant", "content": "Yes."}


def test_images_reach_the_provider_and_tell_questions_apart(client, desk):
    def ask(image):
        content = [
            {"type": "text", "text": "What is on this picture?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        ]
        client.chat.completions.create(**asked(content))
        return len(desk.calls), content

    assert ask("AAAA")[0] == 1
    assert ask("AAAA")[0] == 1
    count, content = ask("BBBB")
    assert count == 2
    assert desk.calls[1].body["messages"][0]["content"] == content


def test_fields_that_nobody_knows_reach_the_provider_and_the_key(client, desk):
    for taste in ("sweet", "sweet", "sour"):
        client.chat.completions.create(**asked(QUESTION, extra_body={"x_taste": taste}))
    assert [call.body["x_taste"] for call in desk.calls] == ["sweet", "sour"]


def test_cache_control(client, desk):
    def ask(directive):
        response, _ = raw(client, QUESTION, extra_headers={"cache-control": directive})
        return response.headers["cache-status"]

    assert ask("no-store") == "refrain; fwd=bypass; detail=no_store"
    assert ask("no-cache") == "refrain; fwd=request; stored"
    assert "; hit; " in ask("only-if-cached")
    assert "; hit; " in ask("max-age=60")
    assert len(desk.calls) == 2


def test_models_list(client):
    assert "default" in [model.id for model in client.models.list()]


@pytest.mark.parametrize("stream", [False, True])
def test_fifty_at_once_are_one_call(client, desk, stream):
    def ask(_):
        response, answer = raw(client, QUESTION, stream=stream)
        text = text_of(answer) if stream else answer.choices[0].message.content
        return text, response.headers["cache-status"]

    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(ask, range(50)))
    assert {text for text, _ in answers} == {answer_for(QUESTION)}
    assert len(desk.calls) == 1
    own = [status for _, status in answers if "fwd=miss" in status and "collapsed" not in status]
    assert len(own) == 1, own
