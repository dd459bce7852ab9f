"""The answer book: approved answers go in by the command line, and come out again."""

import json

import pytest

from asking import PARAPHRASE, QUESTION
from service import command

BOOK = """question,answer,aliases,tags,pinned
How do I reset my password?,"In the portal, under ""Account"".",Lost my password|Password gone,kb:it,yes
,nothing is asked,,,
Where is the canteen?,On the second floor.,,kb:house,
How do I reset my  password?,again,,,
"""


@pytest.fixture
def service(serve):
    return serve()


def admin(service):
    return {"REFRAIN_ADMIN_URL": service.admin}


def run(service, *arguments, code=0):
    done = command(*arguments, **admin(service))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_book_is_answered_from_at_once_and_comes_out_again(service, tmp_path):
    book = tmp_path / "faq.csv"
    book.write_text(BOOK)
    said = run(service, "import", str(book), "--dry-run")
    assert "2 answers could be imported, 2 records are passed over." in said
    assert not service.entries()
    said = run(service, "import", str(book))
    assert "2 answers imported for 4 wordings into default, 2 records passed over." in said
    assert "line 3" in said and "line 5" in said
    for question in (QUESTION, "Password gone", PARAPHRASE):
        answered = service.ask(question)
        assert answered.json()["choices"][0]["message"]["content"] == 'In the portal, under "Account".', question
    assert answered.headers["x-refrain-source"] == "semantic"

    exported = tmp_path / "out.jsonl"
    assert "4 answers written" in run(service, "export", str(exported))
    records = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {record["question"] for record in records} == {
        QUESTION, "Lost my password", "Password gone", "Where is the canteen?"
    }
    assert "3 answers written" in run(service, "export", str(tmp_path / "pinned.md"), "--pinned")
    assert "1 answers written" in run(service, "export", str(tmp_path / "house.csv"), "--tag", "kb:house")

    run(service, "evict", "--all")
    assert "4 answers imported for 4 wordings" in run(service, "import", str(exported))
    assert service.ask(QUESTION).headers["x-refrain-source"] == "exact"


def test_an_import_that_was_interrupted_goes_on(service, tmp_path):
    book = tmp_path / "faq.jsonl"
    lines = [json.dumps({"question": f"What is rule {n}?", "answer": f"Rule {n}."}) for n in range(80)]
    book.write_text("\n".join(lines))
    said = run(service, "import", str(book), "--namespace", "default")
    assert "80 answers imported" in said
    state = [file.name for file in tmp_path.iterdir() if "refrain-import" in file.name]
    assert not state, "a finished import leaves nothing behind"
    service.stop()
    run(service, "import", str(book), code=1)
    service.start()
    assert "80 answers imported" in run(service, "import", str(book)), "nothing was done, so it begins anew"


def test_a_template_says_how_callers_ask(service, tmp_path):
    book, like = tmp_path / "faq.md", tmp_path / "like.json"
    book.write_text(f"# FAQ\n\n## {QUESTION}\n\nIn the portal.\n")
    request = {"model": "default", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}]}
    like.write_text(json.dumps(request))
    assert "1 answers imported" in run(service, "import", str(book), "--like", str(like))
    messages = [request["messages"][0], {"role": "user", "content": QUESTION}]
    assert service.ask(QUESTION, messages=messages).headers["x-refrain-source"] == "exact"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("faq.txt", "x", ["faq.txt", "csv"]),
        ("faq.csv", "question,reply\n", ["faq.csv", "reply"]),
        ("gone.csv", None, ["gone.csv"]),
    ],
)
def test_a_book_that_cannot_be_read_is_named(service, tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    said = run(service, "import", str(tmp_path / name), code=1)
    assert all(word in said for word in words), said
