import { expect, it } from "vitest";

import { formatMoney, formatShare, formatShort, formatTokens, shortModel, showTitle, showInvisible } from "../src/lib/format";

it("does not show an unknown amount as zero", () => {
  expect(formatMoney(null)).toBe("no price");
  expect(formatTokens(null)).toBe("unknown");
  expect(formatMoney("0")).toBe("$0.00");
});

it("shows as many digits of an amount as say something", () => {
  expect(formatMoney("0.0004696")).toBe("$0.000470");
  expect(formatMoney("0.00744")).toBe("$0.0074");
  expect(formatMoney("12.5")).toBe("$12.50");
  expect(formatMoney("-0.25", true)).toBe("−$0.250");
});

it("rounds shares down, so that all is all", () => {
  expect(formatShare(999, 1000)).toBe("99%");
  expect(formatShare(0, 0)).toBe("0%");
});

it("shortens counts and names of models", () => {
  expect(formatShort(12_345)).toBe("12.3k");
  expect(formatShort(123_456)).toBe("123k");
  expect(shortModel("openai-compatible:http://host/v1#org/name")).toBe("name");
  expect(shortModel("anthropic:claude-opus-5-5")).toBe("claude-opus-5-5");
});

it("shows titles without the marks of attached notes", () => {
  expect(showTitle("What is new in @docs/plan.md?")).toBe("What is new in docs/plan.md?");
  expect(showTitle('@"My plan.md" and [[Garden]] (@notes/a.md)')).toBe("My plan.md and Garden (notes/a.md)");
  expect(showTitle("![[Plan]] for @[[Garden plan]]")).toBe("Plan for Garden plan");
  expect(showTitle("Mail to ana@example.com @ noon")).toBe("Mail to ana@example.com @ noon");
});

it("shows titles without what turns or hides text, and no title that nobody can see", () => {
  expect(showTitle("a\u202eb\u200bc\u001b[31md")).toBe("abcd");
  expect(showTitle("\u0301\u0301\u200b")).toBe("");
  expect(showTitle("باب [[beds]]")).toBe("باب beds");
});

it("writes what has no shape of its own as its number", () => {
  expect(showInvisible("a\u202eb\u{e0041}\tc\n\u001b")).toBe("a⟨U+202E⟩b⟨U+E0041⟩\tc\n⟨U+001B⟩");
});
