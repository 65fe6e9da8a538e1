from notyet import Session, Turn


def test_a_turn_needs_only_its_text():
    turn = Turn(text="done")
    assert (turn.stop_reason, turn.tool_calls, turn.error) == ("end_turn", 0, None)


def test_the_protocol_names_what_a_driver_must_offer():
    assert {"ref", "send", "knows", "abort", "transcript"} <= set(vars(Session))
