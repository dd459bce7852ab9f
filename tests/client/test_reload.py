"""Settings that change while the service runs."""

import signal

from service import command, wait_until


def rewrite(service, old: str, new: str):
    settings = service.config.read_text()
    assert old in settings
    service.config.write_text(settings.replace(old, new))


def switched_by_the_config(service):
    return [line["target"] for line in service.get("/admin/switches")["config"]]


def test_a_hangup_reads_the_file_again(serve):
    service = serve('switches.off = []\nreload.poll_interval = "0s"\n')
    rewrite(service, "switches.off = []", 'switches.off = ["feature:hedging"]')
    assert switched_by_the_config(service) == [], "nobody has asked for it"
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: switched_by_the_config(service) == ["feature:hedging"], "the new switch")
    rewrite(service, '"feature:hedging"', '"feature:everything"')
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "everything stays as it was" in service.log(), "a line in the log")
    assert switched_by_the_config(service) == ["feature:hedging"]


def test_a_changed_file_is_noticed(serve):
    service = serve('switches.off = []\nreload.poll_interval = "20ms"\n')
    rewrite(service, "switches.off = []", 'switches.off = ["feature:hedging"]')
    wait_until(lambda: switched_by_the_config(service) == ["feature:hedging"], "the new switch")
    service.config.unlink()
    service.config.with_suffix(".new").write_text("switches.off = []")
    assert switched_by_the_config(service) == ["feature:hedging"], "no file is no wish"


def test_a_reload_says_what_changed_and_what_waits(serve):
    service = serve('server.max_connections = 77\nreload.poll_interval = "0s"\n')
    reload = lambda: command("reload", "--admin", service.admin)  # noqa: E731
    assert reload().stdout.strip() == "nothing has changed"
    rewrite(service, "max_connections = 77", "max_connections = 78")
    with service.config.open("a") as config:
        config.write('\nnamespaces.default.ttl = "2h"\n')
    assert reload().stdout.splitlines() == ["in force now: namespaces.default.ttl", "needs a restart: server.max_connections"]
    with service.config.open("a") as config:
        config.write("\nnot toml")
    failed = reload()
    assert failed.returncode == 1 and "answered 400" in failed.stderr
