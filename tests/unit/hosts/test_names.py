"""Names of hosts stand in `hosts/` alone: everything else takes them from the hosts' data."""

import re
from pathlib import Path

import notyet
from notyet.hosts import HOSTS
from notyet.hosts.known_programs import OTHERS

SOURCE = Path(notyet.__file__).parent
NAMES = ({*HOSTS} | {host.name for host in OTHERS} | {"openclaw"}) - {"notyet", "unknown"}
# Core names dialects of hooks and styles of matchers, as records of trusted files store them.
ALLOWED = {"core/gate.py", "core/matcher.py"}
QUOTED = re.compile("[\"'](" + "|".join(sorted(NAMES)) + ")[\"']")


def test_no_module_outside_hosts_names_a_host():
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "hosts"
        and (names := QUOTED.findall(path.read_text(encoding="utf-8")))
    }
    assert found.keys() == ALLOWED, found
