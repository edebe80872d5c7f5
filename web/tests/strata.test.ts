import { expect, it } from "vitest";

import type { PieceJson, TurnStrataJson } from "../src/lib/api/types";
import { causeWords, drawPicture, groupOf, missWords, findPieceText, spreadLabels } from "../src/lib/strata";

function piece(start: number, tokens: number, same: boolean, layer: PieceJson["layer"] = "L1_SYSTEM"): PieceJson {
  return { start, tokens, layer, id: "base", kind: "system", form: "full", place: "system", same };
}

function turn(number: number, pieces: PieceJson[], cause = "none", common = 0): TurnStrataJson {
  const total = pieces.reduce((sum, one) => sum + one.tokens, 0);
  return {
    turn: number,
    message: String(number),
    at: null,
    model: null,
    total,
    limit: 1000,
    prefix: { cause, segment: "a.md", common_tokens: common },
    cache: { same: common, predicted: 0, reported: null },
    verdict: null,
    miss: null,
    cost: null,
    output: null,
    billed: null,
    compaction: null,
    pieces,
  };
}

it("draws the start of a prompt at the bottom, in the height of its tokens", () => {
  const { paths, width } = drawPicture([turn(1, [piece(0, 25, true), piece(25, 75, false, "L3_TURN")])], { step: 20, gap: 4, height: 200, scale: 100 });
  expect(width).toBe(20);
  expect(paths).toEqual([
    { group: "system", same: true, d: "M0 150.00h16v50.00h-16z" },
    { group: "notes", same: false, d: "M0 0.00h16v150.00h-16z" },
  ]);
});

it("draws a break only where a prefix broke", () => {
  const turns = [turn(1, [piece(0, 50, false)], "first_turn"), turn(2, [piece(0, 100, false)], "artifact_updated", 25), turn(3, [piece(0, 100, true)])];
  expect(drawPicture(turns, { step: 20, gap: 4, height: 100, scale: 100 }).breaks).toEqual([{ turn: 2, x: 20, y: 75, width: 16 }]);
});

it("names causes in words", () => {
  expect(causeWords("artifact_updated", "a.md")).toBe("a.md was edited");
  expect(causeWords("something_new", null)).toBe("something new");
});

it("keeps the colour of a note where it moves", () => {
  expect(groupOf({ ...piece(0, 9, false, "L3_TURN"), kind: "note" })).toBe(groupOf({ ...piece(0, 9, true, "L2_PREVIOUS"), kind: "note" }));
});

it("says what a miss cost, with and without a price", () => {
  const missed = (cost: string | null) => missWords({ ...turn(2, []), miss: { tokens: 2460, cost } });
  expect(missed("0.0111")).toBe("2,460 tokens that were in the cache had to be read again, for $0.0111 more than from the cache");
  expect(missed(null)).toBe("2,460 tokens that were in the cache had to be read again");
  expect(missWords(turn(2, []))).toBe("");
});

it("moves labels apart and keeps them inside", () => {
  const placed = spreadLabels([1, 2, 3, 90, 99], 20, 0, 120);
  for (let index = 1; index < placed.length; index++) expect((placed[index] ?? 0) - (placed[index - 1] ?? 0)).toBeGreaterThanOrEqual(20);
  expect(placed[0]).toBeGreaterThanOrEqual(1);
  expect(placed.at(-1)).toBeLessThanOrEqual(110);
});

it("finds the block of a note in the message that carries it", () => {
  const note = (name: string) => `<note_context>\n<title>${name}</title>\n<path>${name}.md</path>\n<content>\ntext of ${name}\n</content>\n</note_context>`;
  expect(findPieceText(`Intro\n${note("a")}\n${note("b")}\nQuestion`, "b.md")).toBe(note("b"));
  expect(findPieceText("only words", "missing.md")).toBe("only words");
});

it("draws 300 turns of 40 parts in a blink", () => {
  const turns = Array.from({ length: 300 }, (_, index) => turn(index + 1, Array.from({ length: 40 }, (_, at) => piece(at * 10, 10, at < 35))));
  const begin = performance.now();
  drawPicture(turns, { step: 10, gap: 2, height: 260, scale: 400 });
  expect(performance.now() - begin).toBeLessThan(100);
});
