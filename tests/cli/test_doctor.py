"""`thoughtline doctor`: what it finds, what it advises, and that it touches nothing."""

from support.doctor import SECRET, examined, found, run, write


def test_all_is_well_without_any_configuration(folder):
    result = run()
    assert result.exit_code == 0
    assert "Settings files: none" in result.output
    assert "server.port = 0  $THOUGHTLINE_PORT" in result.output
    assert "everything else has its default" in result.output
    assert "thoughtline.db will be created" in result.output
    assert "also known, with the client's own credential: openai" in result.output
    assert "All is well." in result.output
    assert list(folder.iterdir()) == []


def test_it_says_where_each_value_comes_from(folder, monkeypatch):
    write(f"[store]\nurl = 'memory://'\n[access.clients.alice]\nkey = '{SECRET}'")
    monkeypatch.setenv("THOUGHTLINE_ADMIN_TOKEN", SECRET + "2")
    report = examined()
    assert report["files"] == [str(folder / "thoughtline.toml")]
    settings = report["settings"]
    assert settings["store.url"] == {"value": '"memory://"', "source": "thoughtline.toml"}
    assert settings["access.clients.alice.key"]["value"] == '"***"'
    assert settings["access.admin_token"]["source"] == "$THOUGHTLINE_ADMIN_TOKEN"
    assert settings["log.level"]["source"] == "default"
    assert found(report, "store", "note") == [
        "sessions are held in memory and end with the process "
    ]
    text = run().output
    assert "access.clients.alice.key = " in text
    assert "1 client key(s)" in text


def test_settings_that_are_wrong_are_told_one_by_one(folder):
    write("[server]\nprt = 1\nworkers = 0")
    report = examined()
    assert not report["ok"]
    assert len(found(report, "settings", "problem")) == 2
    text = run().output
    assert "did you mean `server.port`?" in text
    assert "2 problem(s)." in text
    assert run("--config", "gone.toml").exit_code == 1


# --- The store ---------------------------------------------------------------------------------
