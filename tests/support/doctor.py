"""`thoughtline doctor`, run in this process."""

import json

from click.testing import CliRunner

from thoughtline.cli.doctor import doctor

SECRET = "sk-hush-0123456789"


def write(text):
    with open("thoughtline.toml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def run(*arguments):
    result = CliRunner().invoke(doctor, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert SECRET not in result.output
    return result


def examined(*arguments):
    result = run("--json", *arguments)
    report = json.loads(result.output)
    assert report["ok"] is (result.exit_code == 0)
    return report


def found(report, about, level=None):
    return [
        f"{finding['text']} {finding['advice']}"
        for finding in report["findings"]
        if finding["about"] == about and level in (None, finding["level"])
    ]
