"""The questions of the tests, and the shortest ways to ask them by the SDK."""

QUESTION = "How do I reset my password?"
PARAPHRASE = "How can I reset my password?"


def asked(question, **fields):
    """The arguments of `create` for one question."""
    return {"model": "default", "messages": [{"role": "user", "content": question}], **fields}


def raw(client, question, **fields):
    """The response with its headers, and what the SDK makes of it."""
    response = client.chat.completions.with_raw_response.create(**asked(question, **fields))
    return response, response.parse()


#: A stream that carries usage can be served again to those who want it, whole or streamed.
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def text_of(chunks):
    """What a stream says."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
