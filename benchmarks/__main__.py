"""`make bench`: every benchmark, as a table; nothing is asserted, the machine may be noisy.

python -m benchmarks                all of them
python -m benchmarks core replay    only these
python -m benchmarks --json
"""

import importlib
import json
import pkgutil
import sys

import benchmarks
from benchmarks.stands import build


def main() -> None:
    """Run what was asked for."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    names = [name for name in names if not name.startswith("_") and (not words or name in words)]
    if unknown := set(words) - set(names):
        sys.exit(f"no benchmark is called {', '.join(sorted(unknown))}")
    results: dict[str, list[tuple[str, float, str]]] = {}
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "run"):
            continue
        print(f"… {name}", file=sys.stderr, flush=True)
        results[name] = module.run()
    if "--json" in sys.argv:
        print(json.dumps(results, indent=2))
        return
    print(f"\n{build()}; CPU time where it says so\n")
    for name, rows in results.items():
        print(name)
        for label, figure, unit in rows:
            print(f"  {label:74} {figure:12,.2f} {unit}")
        print()


main()
