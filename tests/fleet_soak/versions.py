"""Two workers of different versions on one database."""

import time

from fleet_soak.agents import notes
from fleet_soak.world import world

TASKS = 60


async def versions(options):
    """Let the older of two workers refuse what a newer one migrated, and lose nothing by it."""
    async with world(keep=options.keep) as here:
        here.start("old", "one machine")  # where an owner lives as long as its process
        await here.until(lambda: here.crew.is_alive("old"), 10)
        for number in range(TASKS):
            await here.submit(f"t{number}")
        await here.until(lambda: any(here.prompts()))
        before = version(here)
        here.start("new", "one machine", is_newer=True)
        here.start_consumer(is_newer=True)
        await here.until(lambda: version(here) > before)
        migrated, old = time.monotonic(), here.crew.pid("old")
        has_ended = await here.until(lambda: not here.crew.is_alive("old"), 60)
        here.crew.forget("old")
        await here.all_delivered(90)
        # A second old one finds the newer tables when it starts.
        here.start("late")
        await here.until(lambda: not here.crew.is_alive("late"), 30)
        here.crew.forget("late")
        figures, broken = here.judge()
        lines = here.prompts()
        late = [one for one in lines if one["pid"] == old and one["what"] == "prompt"]
        late = [one["at"] - migrated for one in late if one["at"] > migrated + 1.0]
        said = [line["text"] for line in notes(here.path("refusals"))]
        refused = [text for text in said if "upgrade notyet" in text]
        by_new = sum(one["pid"] != old and one["what"] == "prompt" for one in lines)
        figures |= {
            "version of the tables": f"{before} -> {version(here)}",
            "prompts of the older, newer worker": f"{len(lines) // 2 - by_new}, {by_new}",
            "prompts of the older after it": len(late),
            "the older ended by itself": "yes" if has_ended else "no",
            "the older said": refused[0].partition(": ")[2] if refused else "nothing",
        }
        if late:
            broken.append(f"the older worker sent {len(late)} prompts after the migration")
        if not has_ended:
            broken.append("the older worker did not end, and kept its tasks")
        if len(refused) < len(("old", "late")):
            broken.append("an older worker did not refuse")
        if version(here) != before + 1:
            broken.append("the older worker changed the tables")
        return figures, broken


def version(here):
    """Return the version of the tables."""
    sql = "SELECT max(version) FROM notyet.ledger_version"
    done = here.cluster.run("psql", "-qAt", "-d", "postgres", "-c", sql)
    return int(done.stdout.strip() or 0)
