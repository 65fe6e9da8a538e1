"""Which remembered passes would be there today and were not then, or the other way round (N1).

A gate is spared on files that it passed on before, and did not fail on since, at whatever stop. So
once a stop would ask other gates than it did, later ones may spare others too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report

    Said = tuple[str, str]  # a gate, and the kind of its answer


class Doubted:
    """The questions of whose passes nobody knows any more whether they are remembered."""

    def __init__(self) -> None:
        self._definitions: set[str] = set()

    def about(self, definition: str) -> bool:
        """Tell whether passes of this question may be others than they were."""
        return definition in self._definitions

    def note(
        self,
        reports: Sequence[Report],
        definitions: Mapping[str, str],
        *,
        may_say: Iterable[Said],
        must_say: Iterable[Said],
    ) -> None:
        """Take what a recorded stop would leave to be remembered: perhaps, and in any case.

        `definitions` are those of the gates that can be spared today, by name.
        """
        asked = (report for report in reports if is_asked(report) and report.when == "changed")
        then = {(report.definition, said(report)[1]) for report in asked}
        perhaps, surely = (
            {(definitions[gate], kind) for gate, kind in some if gate in definitions}
            for some in (may_say, must_say)
        )
        self._definitions |= {definition for definition, _ in (then - surely) | (perhaps - then)}


def is_asked(report: Report) -> bool:
    """Tell whether a gate was asked."""
    return report.answer is not None and not report.spared


def said(report: Report) -> Said:
    """Return which gate said what, words aside."""
    return report.gate, type(report.answer).__name__


def anything(gates: Iterable[Gate]) -> frozenset[Said]:
    """Return what gates may say of which nothing is known."""
    return frozenset((gate.name, "?") for gate in gates)
