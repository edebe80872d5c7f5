import { describe, expect, it } from "vitest";

import { EventParser } from "../src/lib/api/client";

describe("EventParser", () => {
  it("joins events that arrive in pieces", () => {
    const parser = new EventParser();
    expect(parser.push('event: delta\ndata: {"te')).toEqual([]);
    expect(parser.push('xt":"a"}\nid: 1.2\n\n: ping\n\nevent: delta\ndata: {"text":"b"}\n\n')).toEqual([
      { name: "delta", id: "1.2", data: { text: "a" } },
      { name: "delta", id: null, data: { text: "b" } },
    ]);
  });
});
