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

describe("formulas", () => {
  it("become MathML, in a line and on their own", () => {
    expect(renderMarkdown("It is $\\frac{a}{2} \\leq \\alpha_1$.")).toContain("<mfrac><mrow><mi>a</mi></mrow><mrow><mn>2</mn></mrow></mfrac>");
    expect(renderMarkdown("$$\nx^2\n$$\n")).toContain('<math display="block"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>');
    expect(renderMarkdown("\\(\\sum_{i=1}^n i\\)")).toContain("<munderover><mo>∑</mo>");
    expect(renderMarkdown("\\[\\begin{pmatrix}a & b\\\\ c & d\\end{pmatrix}\\]")).toContain("<mtd><mi>d</mi></mtd>");
  });

  it("keep the attributes of lists and code around them", () => {
    expect(renderMarkdown("3. third")).toContain('<ol start="3">');
    expect(renderMarkdown("```\nx\n```")).toContain('tabindex="0"');
  });

  it("are not found in amounts and code", () => {
    for (const text of ["It costs $5 and $6.", "`$x$`", "US$ 3 and 4 $"]) expect(renderMarkdown(text)).not.toContain("<math");
  });

  it("keep what they do not know, and bring no markup in", () => {
    expect(renderMarkdown("$\\strange{x}$")).toContain("\\strange");
    const hostile = renderMarkdown("$\\text{<img src=x onerror=hit(1)>}$ and $<script>hit(1)</script>$ $}}&$");
    expect(hostile).not.toMatch(/<(img|script)/);
    expect(renderMarkdown(`$${"{".repeat(500)}x$`)).toContain("<math");
  });
});
