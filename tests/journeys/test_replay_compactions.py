"""A replay that has to make room: as data, as a table, and the same on every machine."""

import json

from tests.contracts.repository import ROOT
from tests.journeys.running import run, spawn

from lamella.core.log.receipts import CompactionStepName

LONG = str(ROOT / "examples" / "long.json")
ROWS = {"L1_SYSTE", "L2_PREVI", "L3_TURN", "L4_STRIP", "L5_USER", "tools", "overhead"}


def test_each_turn_has_its_receipt_or_null() -> None:
    told = json.loads(run("replay", LONG, "--json").out)
    receipts = {turn["turn"]: turn["compaction"] for turn in told["turns"] if turn["compaction"] is not None}
    assert list(receipts) == [4, 14]
    assert told["totals"]["compactions"] == 2
    for number, receipt in receipts.items():
        turn = told["turns"][number - 1]
        assert receipt["tokens_after"] == turn["tokens"]["total"] < receipt["tokens_before"]
        assert receipt["automatic"] is True
        assert {step["name"] for step in receipt["steps"]} <= set(CompactionStepName)
        assert all(step["removed"] for step in receipt["steps"])
        assert all(step["tokens_after"] < step["tokens_before"] for step in receipt["steps"])
        assert turn["prefix"]["cause"] in ("compacted", "tools_changed")


def test_artifacts_removed_by_receipt_are_missing_in_next_request() -> None:
    turns = json.loads(run("replay", LONG, "--json").out)["turns"]
    for turn in turns:
        forms = {s["id"]: s["form"] for layer in turn["envelope"]["layers"] for s in layer["segments"]}
        for step in (turn["compaction"] or {"steps": []})["steps"]:
            if step["name"] == "handle":
                assert [forms[name] for name in step["removed"]] == ["handle"] * len(step["removed"])
            if step["name"] in ("chitchat", "expendable"):
                assert [name for name in step["removed"] if name in forms] == []


def test_table_has_a_line_for_each_and_a_sum() -> None:
    out = run("replay", LONG).out
    assert [line for line in out.splitlines() if line.startswith("  compacted: ")] == [
        "  compacted: 2,795 → 1,352 tokens by handle 1, digest 3 (receipt 6d62f9ff8d44)",
        "  compacted: 2,750 → 1,177 tokens by chitchat 2, handle 3, tool_results 2, replies 1 (receipt 74ba6435444a)",
    ]
    assert out.splitlines()[-2].endswith(" · prefix changed 2 times · compacted 2 times")


def test_table_accounts_for_every_token() -> None:
    told = json.loads(run("replay", LONG, "--json").out)["turns"]
    shown = run("replay", LONG).out.split("\nturn ")[1:]
    for turn, text in zip(told, shown, strict=True):
        counted = [int(line[42:50].replace(",", "")) for line in text.splitlines()[1:] if line[2:10].strip() in ROWS]
        assert sum(counted) == turn["tokens"]["total"]


def test_output_is_independent_of_seed_time_zone_and_locale() -> None:
    strange = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    assert spawn("replay", LONG, "--json", environment=strange).out == run("replay", LONG, "--json").out


def test_every_invariant_passes_during_replay() -> None:
    ran = run("replay", LONG, "--check")
    assert (ran.exit, ran.err) == (0, "")
