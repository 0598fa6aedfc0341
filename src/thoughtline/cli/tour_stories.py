"""The conversations of the tour: what a user asks, what the model thinks, does and says.

Each shows one thing that happens to thoughts. Everything in them is made up, the bug included.
"""

from collections.abc import Sequence
from typing import NamedTuple

from thoughtline.testing import Piece, Say, Think, Use


class Round(NamedTuple):
    """One answer of the model, and what its calls give back."""

    pieces: tuple[Piece, ...]
    results: tuple[str, ...] = ()


class Question(NamedTuple):
    """What the user says, and the rounds that it takes to answer."""

    text: str
    rounds: tuple[Round, ...]
    model: str = ""
    """Asked from here on, if it is another one."""
    new_keys: bool = False
    """Before this question the provider changes its keys: what it sealed, it cannot open again."""
    instead: bool = False
    """The user edits the last question, and asks this in its place."""


class Story(NamedTuple):
    """One conversation."""

    shows: str
    """What there is to see, in a few words."""
    model: str
    questions: Sequence[Question]


_TEST = """\
def test_login_sets_a_cookie(client):
    answer = client.post("/login", data={"user": "ada", "password": "x"})
    assert answer.cookies["session"]
"""

PUT_BACK = Story(
    "every thought put back, though the client keeps none",
    "sim/deepseek",
    [
        Question(
            "The login test fails since this morning. Can you find out why?",
            (
                Round(
                    (
                        Think(
                            "A test that failed only since this morning: something changed, so the"
                            " history matters as much as the code. First I want to see what the"
                            " test expects, and where the cookie is set. Both can be looked at"
                            " together."
                        ),
                        Use("read_file", '{"path": "tests/test_login.py"}'),
                        Use("search", '{"query": "set_cookie"}'),
                    ),
                    (_TEST, "app/session.py:41: response.set_cookie('sid', token)"),
                ),
                Round(
                    (
                        Think(
                            "There it is: the test looks for a cookie called `session`, and the"
                            " code sets one called `sid`. Which of the two is right? If the name"
                            " in the code was changed this morning, the test is the older promise."
                            " The history of app/session.py will tell."
                        ),
                        Say("The test wants a cookie `session`, the code sets `sid`."),
                        Use("run", '{"command": "git log -2 --oneline app/session.py"}'),
                    ),
                    ("9f31c02 Shorter cookie names\n4be77d1 Sessions expire after a day\n",),
                ),
                Round(
                    (
                        Think(
                            "“Shorter cookie names” is the newest commit, so the rename was on"
                            " purpose and the test was forgotten. Still, browsers that hold the"
                            " old cookie are logged out by it: that is worth a word."
                        ),
                        Say(
                            "Commit 9f31c02 renamed the cookie from `session` to `sid`, and the"
                            " test still has the old name. The rename also logs out everybody who"
                            " holds the old cookie. Shall I change the test?"
                        ),
                    )
                ),
            ),
        ),
        Question(
            "Yes, change the test.",
            (
                Round(
                    (
                        Think(
                            "One line: `answer.cookies['sid']`. Afterwards the test has to run;"
                            " saying that it passes without having seen it would be a guess."
                        ),
                        Use("run", '{"command": "sed -i s/session/sid/ tests/test_login.py"}'),
                        Use("run", '{"command": "pytest -q tests/test_login.py"}'),
                    ),
                    ("", "1 passed in 0.21s"),
                ),
                Round(
                    (
                        Think("It passes. Nothing else used the old name, so this is done."),
                        Say("Done: the test asks for `sid` now, and passes."),
                    )
                ),
            ),
        ),
    ],
)

DROPPED = Story(
    "a model switch: what the other one thought stays behind, and says why",
    "sim/deepseek",
    [
        Question(
            "I want to keep track of the books in our small library. Which tables do I need?",
            (
                Round(
                    (
                        Think(
                            "Books, members, loans. The trap is that a library owns several copies"
                            " of one book: lent out is the copy, never the title. So four tables,"
                            " with a loan that points at a copy and at a member."
                        ),
                        Say(
                            "Four: `books` for titles, `copies` for what stands on the shelf,"
                            " `members`, and `loans`, each for one copy and one member."
                        ),
                    )
                ),
            ),
        ),
        Question(
            "Write the SQL for the loans, please.",
            (
                Round(
                    (
                        Think(
                            "A loan has a copy, a member, a day when it began and a day when it is"
                            " due; `returned` stays empty as long as the book is out. One open loan"
                            " per copy: a partial unique index says so."
                        ),
                        Say(
                            "    create table loans (\n"
                            "      copy integer not null references copies,\n"
                            "      member integer not null references members,\n"
                            "      due date not null,\n"
                            "      returned date\n"
                            "    );\n"
                            "    create unique index open_loan on loans (copy)"
                            " where returned is null;"
                        ),
                    )
                ),
            ),
            model="sim/kimi",
        ),
        Question(
            "How do I find what is overdue?",
            (
                Round(
                    (
                        Think(
                            "Overdue means: not returned, and due before today. My design had the"
                            " copy in the loan, so the title comes from a join over copies."
                        ),
                        Say(
                            "    select title, due from loans join copies on copies.id = copy\n"
                            "    join books on books.id = book\n"
                            "    where returned is null and due < current_date;"
                        ),
                    )
                ),
            ),
            model="sim/deepseek",
        ),
    ],
)

BRANCH = Story(
    "a question that was edited: two branches, each with its own thoughts",
    "sim/kimi",
    [
        Question(
            "I give a talk about tides. Do you have a title for it?",
            (
                Round(
                    (
                        Think(
                            "Tides: the moon, twice a day, patience. A title should promise"
                            " something that one does not know yet: that the sea is late, the same"
                            " every day, by fifty minutes."
                        ),
                        Say("“Fifty Minutes Late: What the Moon Does to the Sea”"),
                    )
                ),
            ),
        ),
        Question(
            "Shorter, please.",
            (
                Round(
                    (
                        Think("Keep the surprise, drop the explanation. “Fifty Minutes Late”."),
                        Say("“Fifty Minutes Late”"),
                    )
                ),
            ),
        ),
        Question(
            "More playful, please.",
            (
                Round(
                    (
                        Think(
                            "Playful, but no pun that everybody has heard: “tide” and “tied” is"
                            " worn out. The sea as somebody who is never on time is better."
                        ),
                        Say("“The Sea Apologises for the Delay”"),
                    )
                ),
            ),
            instead=True,
        ),
    ],
)

HEALED = Story(
    "a refusal that healed: the provider cannot read its own thoughts any more",
    "sim/openai",
    [
        Question(
            "Is `retry.py` safe to use?",
            (
                Round(
                    (
                        Think(
                            "Retries are safe if what is retried may happen twice, and if they stop"
                            " at some point. I have to see the loop before I say anything."
                        ),
                        Use("read_file", '{"path": "retry.py"}'),
                    ),
                    ("while True:\n    try:\n        return call()\n    except Exception: pass\n",),
                ),
                Round(
                    (
                        Think(
                            "It never gives up, it does not wait, and it swallows every error, also"
                            " the ones that will never go away. Three findings, the first is worst."
                        ),
                        Say(
                            "No. It never gives up, waits for nothing between two attempts, and"
                            " hides every error."
                        ),
                    )
                ),
            ),
        ),
        Question(
            "What would you write instead?",
            (
                Round(
                    (
                        Think(
                            "Five attempts, a pause that doubles, only errors that may pass, and"
                            " the last one is raised."
                        ),
                        Say(
                            "A loop over five attempts that catches `TimeoutError` only, sleeps"
                            " twice as long each time, and raises the last error."
                        ),
                    )
                ),
            ),
            new_keys=True,
        ),
    ],
)

STORIES = (PUT_BACK, DROPPED, BRANCH, HEALED)
