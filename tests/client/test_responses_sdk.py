"""OpenAI's SDK asks by responses, which are served from the same answers as chats."""

import json

import openai
import pytest

from asking import PARAPHRASE, QUESTION, raw
from upstream import USAGE, answer_for

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def told(client, question=QUESTION, **fields):
    """The response's headers, and what the SDK makes of it."""
    response = client.responses.with_raw_response.create(model="default", input=question, **fields)
    return response.headers, response.parse()


def essence(response):
    """What a hit has in common with the miss it repeats."""
    return response.output_text, response.status, response.usage.input_tokens, response.usage.output_tokens, response.model


def test_the_same_request_again_is_an_exact_hit(client, desk):
    headers, miss = told(client, instructions="Be brief.", temperature=0.5)
    assert headers["cache-status"] == "refrain; fwd=miss; stored"
    headers, hit = told(client, instructions="Be brief.", temperature=0.5)
    assert headers["cache-status"].endswith("; detail=exact")
    assert essence(hit) == essence(miss)
    assert miss.output_text == answer_for(QUESTION) and miss.usage.total_tokens == USAGE["total_tokens"]
    assert miss.id != hit.id and hit.id.startswith("resp_")
    assert (hit.instructions, hit.temperature, hit.store) == ("Be brief.", 0.5, False)
    assert len(desk.calls) == 1
    assert desk.calls[0].path == "/v1/chat/completions"


def test_the_same_question_in_other_words_is_a_semantic_hit(client, desk, refrain):
    headers, miss = told(client)
    refrain.wait_entry(headers["x-refrain-entry"])
    headers, hit = told(client, PARAPHRASE)
    assert headers["cache-status"].endswith("; detail=semantic")
    assert essence(hit) == essence(miss) and len(desk.calls) == 1


def test_streams_hit_and_miss_look_alike(client, desk):
    finals = []
    for _ in range(2):
        with client.responses.stream(model="default", input=QUESTION) as stream:
            events = list(stream)
            finals.append(stream.get_final_response())
        kinds = [event.type for event in events]
        assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == answer_for(QUESTION)
        numbers = [event.sequence_number for event in events]
        assert numbers == sorted(set(numbers))
    miss, hit = finals
    assert essence(miss) == essence(hit) and miss.id != hit.id
    assert len(desk.calls) == 1


def test_one_stored_answer_serves_chats_and_responses(client, desk):
    told(client, instructions="Be brief.")
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    statuses = []
    for role in ("developer", "system"):
        messages[0]["role"] = role
        response, completion = raw(client, QUESTION, messages=messages)
        statuses.append(response.headers["cache-status"])
        assert completion.choices[0].message.content == answer_for(QUESTION)
    assert any(status.endswith("; detail=exact") for status in statuses), statuses
    assert len(desk.calls) <= 2


def test_calls_pass_and_are_not_kept(client, desk):
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Basel"}'}}
    desk.respond = lambda exchange: exchange.whole({"content": None, "tool_calls": [call]}, "tool_calls")
    for count in (1, 2):
        _, response = told(client, "Is it raining in Basel?", tools=[TOOL])
        called = next(item for item in response.output if item.type == "function_call")
        assert (called.call_id, called.name, json.loads(called.arguments)) == ("call_1", "weather", {"city": "Basel"})
        assert len(desk.calls) == count
    desk.respond = lambda exchange: exchange.whole({"content": "Yes."})
    _, response = told(client, [
        {"role": "user", "content": "Is it raining in Basel?"},
        called.to_dict(),
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    ], tools=[TOOL])
    assert response.output_text == "Yes."
    assert desk.calls[-1].body["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "rain"}


def test_anthropic_serves_responses_too(client, desk):
    response = client.responses.create(model="claude-any", input=QUESTION)
    assert response.output_text == answer_for(QUESTION)
    assert desk.calls[0].path == "/v1/messages"


def test_a_stream_that_breaks_ends_without_its_terminal(client, desk):
    def respond(exchange):
        exchange.begin_stream()
        exchange.say("The an")

    desk.respond = respond
    events = list(client.with_options(max_retries=0).responses.create(model="default", input=QUESTION, stream=True))
    assert events[-1].type == "error" and "response.completed" not in [event.type for event in events]


@pytest.fixture
def native(serve, desk):
    """A service whose provider speaks responses itself."""
    service = serve('auth.mode = "forward"\nproviders.fake.responses = true\n')
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key=desk.key) as client:
        yield client


OWN = {"previous_response_id": "resp_of_the_provider"}
FULL = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "fake-large",
    "output": [{"type": "message", "id": "m", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "native", "annotations": []}]}],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
}


def test_what_only_responses_can_say_passes_untouched(native, desk):
    desk.respond = lambda exchange: exchange.json(200, FULL)
    for count in (1, 2):
        headers, response = told(native, **OWN)
        assert response.to_dict() == FULL and response.output_text == "native"
        assert headers["cache-status"] == "refrain; fwd=bypass; detail=responses_only"
        assert len(desk.calls) == count
    assert desk.calls[0].path == "/v1/responses"
    assert desk.calls[0].body["previous_response_id"] == OWN["previous_response_id"]


def test_so_do_its_events(native, desk):
    told_events = [
        {"type": "response.created", "sequence_number": 0, "response": FULL | {"status": "in_progress", "output": []}},
        {"type": "response.web_search_call.searching", "sequence_number": 1, "output_index": 0, "item_id": "w"},
        {"type": "response.completed", "sequence_number": 2, "response": FULL},
    ]

    def respond(exchange):
        exchange._begin(200, {"content-type": "text/event-stream"})
        for event in told_events:
            exchange._event(json.dumps(event))

    desk.respond = respond
    events = list(native.responses.create(model="default", input=QUESTION, stream=True, **OWN))
    assert [event.to_dict() for event in events] == told_events


def test_without_such_a_provider_it_is_refused_in_words(client, desk):
    with pytest.raises(openai.BadRequestError) as caught:
        told(client, **OWN)
    assert "responses" in caught.value.body["message"] and not desk.calls
    _, response = told(client)
    with pytest.raises(openai.BadRequestError) as caught:
        told(client, previous_response_id=response.id)
    assert "whole conversation" in caught.value.body["message"]
    assert caught.value.body["param"] == "previous_response_id"


@pytest.mark.parametrize(("status", "exception"), [(400, openai.BadRequestError), (404, openai.NotFoundError)])
def test_the_providers_word_on_the_request_passes(client, desk, status, exception):
    desk.respond = lambda exchange: exchange.refuse(status, "the provider's own words")
    with pytest.raises(exception) as caught:
        told(client)
    assert caught.value.body["message"] == "the provider's own words"


def test_embeddings_come_from_the_local_encoder_under_its_own_name(client, desk):
    name = "bge-small-en-v1.5"
    texts = ["How do I reset my password?", "How can I reset my password?", "Where is the canteen?"]
    made = client.embeddings.create(model=name, input=texts)
    one, other, third = (item.embedding for item in made.data)
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert len(one) == 384 and abs(dot(one, one) - 1) < 1e-3
    assert dot(one, other) > 0.9 > dot(one, third)
    floats = client.embeddings.create(model=name, input=texts[0], encoding_format="float")
    assert floats.data[0].embedding == pytest.approx(one)
    assert not desk.calls and name in [model.id for model in client.models.list()]
    for fields in ({"input": [[1, 2]]}, {"input": "a", "dimensions": 7}, {"input": "a " * 2000}):
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=name, **fields)


def test_other_embeddings_are_passed_on(client, desk):
    told_body = {"object": "list", "model": "fake-large", "usage": {"prompt_tokens": 3, "total_tokens": 3},
                 "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]}
    desk.respond = lambda exchange: exchange.json(200, told_body)
    for count in (1, 2):
        made = client.embeddings.create(model="default", input=QUESTION, encoding_format="float")
        assert made.data[0].embedding == [0.5, 0.25]
        assert len(desk.calls) == count
    assert desk.calls[0].path == "/v1/embeddings" and desk.calls[0].body["model"] == "fake-large"
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="claude-any", input=QUESTION)
