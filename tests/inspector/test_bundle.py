"""Modules become one script that does the same, and what cannot is refused."""

import pytest

from thoughtline.inspector.bundle import script, style
from thoughtline.inspector.static import FOLDER, SHEETS, contents

FILES = {
    "app.js": 'import * as words from "./two-words.js";\nimport { one as uno } from "./one.js";\nwindow.said = [words.two(), uno];\n',
    "two-words.js": 'import { one } from "./one.js";\nexport const two = () => one + one;\n',
    "one.js": "window.times = (window.times ?? 0) + 1;\nexport const one = 1;\nexport class Kind {}\n",
}  # fmt: skip


def test_each_module_comes_once_and_after_those_that_it_imports():
    made = script("app.js", FILES.__getitem__)
    assert made.count("window.times") == 2  # its one line has it twice
    assert made.index("// one.js") < made.index("// two-words.js") < made.index("// app.js")
    assert "const { one: uno } = $one;" in made
    assert "return { one, Kind };" in made
    assert "import " not in made


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('export default 1;\n', "cannot be bundled: export default"),
        ('import "./one.js";\n', "cannot be bundled: import"),
        ('export { a };\n', "cannot be bundled"),
        ('import { x } from "./app.js";\n', "in a circle: app.js → app.js"),
    ],
)  # fmt: skip
def test_what_it_does_not_know_it_refuses(line, problem):
    with pytest.raises(ValueError, match=problem):
        script("app.js", lambda _: line)


def test_everything_in_the_folder_is_served():
    made = contents("page.js").decode()
    for file in FOLDER.iterdir():
        if file.name.endswith(".js") and file.name != "early.js":
            assert f"// {file.name}\n" in made
        elif file.name.endswith(".css"):
            assert file.name in SHEETS
    assert style(["a", "b"], str.upper) == "A\nB"
