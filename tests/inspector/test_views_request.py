"""What a request carried, message by message."""


def test_what_a_request_carried(get):
    last = get("sessions/agent/turns/agent-t3")
    replay = last["turn"]["replay"]
    names = ("restored", "replaced", "exact", "absent", "placeholder", "dropped", "missed", "tied")
    assert [replay[name] for name in names] == [0, 1, 1, 2, 1, 1, 1, 1]
    messages = last["request"]["messages"]
    assert [m["changed"] for m in messages] == [True, False, True, False, False, True, False]
    assert messages[0]["added"] == [{"carrier": "reasoning_content", "bytes": 23, "text": None}]
    assert (messages[0]["turn"], messages[0]["preview"]) == ("agent-t1", "calls read_file")
    assert len(messages[0]["removed"]) == len(messages[5]["removed"]) == 1
    assert messages[2]["added"][0]["carrier"] == "placeholder"
    assert messages[5]["ruling"]["reason"] == "another provider"
    assert (messages[-1]["role"], messages[-1]["preview"]) == ("user", "And b.txt?")
    first = get("sessions/agent/turns/agent-t1")["request"]["messages"]
    assert [(m["position"], m["role"]) for m in first] == [(0, "user")]
