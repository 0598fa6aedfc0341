"""What `thoughtline doctor` says about sealing."""

from click.testing import CliRunner

from support.doctor import examined, found, write
from thoughtline.cli import main


def ran(*arguments, says=""):
    result = CliRunner().invoke(main, list(arguments), input=says)
    assert result.exit_code == 0, result.output
    return result.output


STORE = '[store]\nurl = "sqlite:///talk.db"\n'


def test_one_sentence_says_how_to_switch_it_on(folder):
    write(STORE)
    [text] = found(examined("--offline"), "sealing", "ok")
    assert "what is stored is not encrypted" in text and "thoughtline keys generate" in text


def test_a_store_in_memory_is_not_sealed(folder):
    write('[store]\nurl = "memory://"')
    assert found(examined("--offline"), "sealing") == []


def test_the_keys_and_the_store_are_compared(folder):
    write(STORE + 'keys = "file:ring.keys"')
    report = examined("--offline")
    assert not report["ok"] and "cannot be read" in found(report, "sealing", "problem")[0]
    ran("keys", "generate", "--file", "ring.keys")
    assert "will be sealed" in found(examined("--offline"), "sealing", "ok")[0]
    ran("chat", "--provider", "sim:deepseek", says="Hello\n")
    assert "is sealed with" in found(examined("--offline"), "sealing", "ok")[0]
    (folder / "ring.keys").unlink()
    ran("keys", "generate", "--file", "ring.keys")
    report = examined("--offline")
    assert not report["ok"] and "is not in the ring" in found(report, "sealing", "problem")[0]


def test_what_is_still_plain_is_noted(folder):
    write(STORE)
    ran("chat", "--provider", "sim:deepseek", says="Hello\n")
    ran("keys", "generate", "--file", "ring.keys")
    write(STORE + 'keys = "file:ring.keys"')
    [text] = found(examined("--offline"), "sealing", "note")
    assert "nothing in the store is sealed yet" in text and "re-encrypt" in text
    ran("chat", "--provider", "sim:deepseek", says="Hello again\n")
    assert "some of what is older is plain" in found(examined("--offline"), "sealing", "note")[0]
