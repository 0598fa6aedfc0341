"""What the database reads: nothing in vain, however little it knows of its tables."""

import asyncpg

from stores.samples import turn
from thoughtline.stores.postgres import PostgresStore


async def reads_of(url, column):
    """How much was read of each table by an index, as far as connections were closed since."""
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(
        f"SELECT relname, sum({column}) FROM pg_stat_user_indexes GROUP BY relname"
    )
    await connection.close()
    return {name: int(count) for name, count in rows if count}


async def test_an_append_reads_the_rows_that_it_asks_for_and_no_others(empty):
    """In a database that was never analysed, too: plans from when it was empty are still in use."""
    store = PostgresStore(empty)
    for n in range(200):
        await store.append(turn(f"s{n % 10}", f"t{n}", '"x"', keys=[bytes([n]) * 16]))
    await store.close()  # its connections tell what they have read
    assert (await reads_of(empty, "idx_tup_read")).get("batches", 0) < 500


async def test_a_look_up_does_not_read_what_the_node_knows(empty):
    store = PostgresStore(empty)
    for n in range(20):
        await store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[bytes([n]) * 16]))
    keys = [bytes([n]) * 16 for n in range(20)]
    for _ in range(30):
        assert len(await store.find("T", keys)) == 20
    await store.close()
    assert (await reads_of(empty, "idx_scan"))["batches"] < 100


async def test_a_look_up_is_planned_once_for_a_connection(empty):
    store = PostgresStore(empty)
    await store.append(turn("s", "t", '"x"', keys=[b"k" * 16]))
    await store.close()
    connection = await asyncpg.connect(empty)
    settings = await connection.fetchval(
        "SELECT proconfig FROM pg_proc WHERE proname = 'find' "
        "AND pronamespace = current_schema()::regnamespace"
    )
    await connection.close()
    assert "plan_cache_mode=force_generic_plan" in settings
