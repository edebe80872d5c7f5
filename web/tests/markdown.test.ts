import { describe, expect, it } from "vitest";

import { highlight } from "../src/lib/highlight";
import { MarkdownBlocks, renderMarkdown } from "../src/lib/markdown";

function toText(html: string): string {
  const node = document.createElement("div");
  node.innerHTML = html;
  return node.textContent ?? "";
}

describe("markdown", () => {
  it("shows raw HTML as text", () => {
    const html = renderMarkdown('Hello <img src=x onerror="alert(1)"> and\n\n<script>alert(1)</script>');
    expect(html).not.toMatch(/<img|<script/);
    expect(toText(html)).toContain('<img src=x onerror="alert(1)">');
    expect(toText(html)).toContain("<script>alert(1)</script>");
  });

  it("keeps no address that runs a script, and loads no picture", () => {
    const html = renderMarkdown("[a](javascript:alert(1)) [b](data:text/html,x) ![c](http://example.org/c.png)");
    expect(html).not.toMatch(/javascript:|data:|<img/);
    expect(html).toContain('href="http://example.org/c.png"');
  });

  it("makes a button of a citation", () => {
    expect(renderMarkdown("True.[^2]")).toContain('data-cite="2"');
  });

  it("renders a growing text as it renders the whole", () => {
    const text = "# Plan\n\n1. one\n\n2. two\n\nText with [a link][1].\n\n```py\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.\n\n[1]: https://example.org";
    const growing = new MarkdownBlocks();
    let blocks: string[] = [];
    for (let end = 1; end <= text.length; end++) blocks = growing.update(text.slice(0, end));
    expect(toText(blocks.join(""))).toBe(toText(renderMarkdown(text)));
  });

  it("renders finished blocks once", () => {
    const growing = new MarkdownBlocks();
    const paragraphs = Array.from({ length: 9 }, (_, index) => `Paragraph ${index}.`);
    const before = growing.update(paragraphs.slice(0, 6).join("\n\n"));
    const after = growing.update(paragraphs.join("\n\n"));
    expect(after.slice(0, 6)).toEqual(before);
    expect(after).toHaveLength(9);
  });
});

describe("highlight", () => {
  it("never changes the text", () => {
    for (const [name, code] of [
      ["python", 'def f(x):  # "no"\n    return """a\n<b>""" if x else 0x1F'],
      ["ts", "const a = `x ${b}`; // c\n/* open"],
      ["unknown", "<a & b>"],
      ["diff", "--- a\n+++ b\n-x\n+y"],
    ] as const) {
      expect(toText(highlight(code, name))).toBe(code);
    }
  });

  it("marks keywords, strings and comments", () => {
    const html = highlight("return 'x'  # why", "python");
    expect(html).toContain('<span class="hl-k">return</span>');
    expect(html).toContain('<span class="hl-s">&#39;x&#39;</span>');
    expect(html).toContain('<span class="hl-c"># why</span>');
  });
});
