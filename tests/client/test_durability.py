"""What was acknowledged is there after a restart; what is under way is finished at shutdown."""

import errno
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import openai
import pytest

from asking import STREAM, PARAPHRASE, QUESTION, asked, text_of
from service import wait_until
from upstream import answer_for

# Far from each other, so that none is answered by another's answer.
SUBJECTS = ["tax", "parking", "printer", "vacation", "payroll", "cafeteria", "laptop", "badge", "travel", "insurance"]


def stored(service, at_least=1):
    """How many answers were acknowledged by the store: flushed to disk, not only to be seen."""
    count = service.get("/stats")["totals"]["stored"]
    return count if count >= at_least else None


@pytest.mark.parametrize("round", range(2))
def test_killed_amid_writes_every_entry_is_whole(serve, round):
    service = serve()
    answered = []
    killed = threading.Event()

    def ask(number):
        if killed.is_set():
            return
        question = f"Who can help me with {SUBJECTS[number % 10]} form {number}?"
        try:
            response = service.ask(question)
        except httpx.TransportError:
            return  # the process is gone
        answered.append((question, response.headers["x-refrain-entry"]))

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask, number) for number in range(400)]
        # At another moment in each round: while the first groups are written, and among the later ones.
        acknowledged = wait_until(lambda: stored(service, at_least=(1, 60)[round]), "the first writes")
        service.kill()
        killed.set()
        for future in asking:
            future.result()

    service.start()
    entries = {entry["id"]: entry for entry in service.entries()}
    assert len(entries) >= acknowledged
    for entry_id, entry in entries.items():
        detailed = service.get(f"/admin/entries/{entry_id}")
        assert detailed["reply"]["text"] == answer_for(entry["question"])
        assert detailed["reply"]["finish"] == "stop"
    survivors = [question for question, entry_id in answered if entry_id in entries]
    assert survivors
    for question in survivors[:20]:
        hit = service.ask(question)
        assert hit.headers["x-refrain-source"] == "exact"
        assert hit.json()["choices"][0]["message"]["content"] == answer_for(question)


def test_after_a_restart_hits_of_both_kinds_are_back(serve, upstream):
    service = serve()
    service.ask(QUESTION)
    wait_until(lambda: stored(service), "the write")
    calls = len(upstream.desk("").calls)
    service.kill()
    service.start()
    assert service.ask(QUESTION).headers["x-refrain-source"] == "exact"
    assert service.ask(PARAPHRASE).headers["x-refrain-source"] == "semantic"
    assert len(upstream.desk("").calls) == calls


def test_an_eviction_outlives_a_kill(serve):
    service = serve()
    service.ask(QUESTION)
    wait_until(lambda: stored(service), "the write")
    service.post("/admin/evict", {"namespace": "default"})
    service.kill()
    service.start()
    assert service.ask(QUESTION).headers["x-refrain-source"] == "upstream"


def test_an_answer_right_before_the_stop_is_there_after_it(serve):
    service = serve()
    questions = [f"Who can help me with {subject}?" for subject in SUBJECTS]
    with ThreadPoolExecutor(len(questions)) as threads:
        list(threads.map(service.ask, questions))
    service.stop()
    service.start()
    assert {entry["question"] for entry in service.entries()} >= set(questions)
    assert all(service.ask(question).headers["x-refrain-source"] == "exact" for question in questions)


def test_a_stream_outlasts_the_stop_and_is_kept(serve, upstream):
    go_on = threading.Event()

    def respond(exchange):
        exchange.begin_stream()
        exchange.say("The first half, ")
        assert go_on.wait(10)
        exchange.say("and the second.")
        exchange.end_stream()

    desk = upstream.desk("sk-of-a-long-stream")
    desk.respond = respond
    service = serve('providers.fake.api_key = "env:PROVIDER_KEY"\n', PROVIDER_KEY=desk.key)
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="anything", max_retries=0) as client:
        stream = client.chat.completions.create(**asked(QUESTION, **STREAM))
        heard = [next(stream), next(stream)]
        service.terminate()
        wait_until(lambda: refuses(service), "the closed listener")
        assert service.process.poll() is None
        go_on.set()
        assert text_of([*heard, *stream]) == "The first half, and the second."
    service.stop()
    service.start()
    hit = service.ask(QUESTION)
    assert hit.headers["x-refrain-source"] == "exact"
    assert hit.json()["choices"][0]["message"]["content"] == "The first half, and the second."


def refuses(service) -> bool:
    """Whether no new connection is taken any more."""
    address = httpx.URL(service.url)
    with socket.socket() as probe:
        return probe.connect_ex((address.host, address.port)) == errno.ECONNREFUSED
