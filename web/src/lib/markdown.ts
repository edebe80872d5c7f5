// Markdown of answers as blocks of clean HTML. Raw HTML stays text, and nothing is loaded from elsewhere.
import DOMPurify from "dompurify";
import { Marked, type Token, type TokensList } from "marked";

import { escapeHtml, highlight } from "./highlight";
import { renderMath } from "./math";

const marked = new Marked({
  gfm: true,
  extensions: [
    {
      name: "mathBlock",
      level: "block",
      start: (text) => /(?:^|\n)(?:\$\$|\\\[)/.exec(text)?.index,
      tokenizer(text) {
        const found = /^\$\$([^]+?)\$\$ *(?:\n|$)/.exec(text) ?? /^\\\[([^]+?)\\\] *(?:\n|$)/.exec(text);
        return found ? { type: "mathBlock", raw: found[0], formula: found[1] } : undefined;
      },
      renderer: (token) => `<div class="formula">${renderMath(String(token.formula), true)}</div>`,
    },
    {
      name: "math",
      level: "inline",
      start: (text) => /\$|\\\(/.exec(text)?.index,
      tokenizer(text) {
        // An amount such as $5 is no formula: no blank inside the signs, and no digit after them.
        const found = /^\$\$([^$\n]+)\$\$/.exec(text) ?? /^\$(?![\s$])((?:[^$\n\\]|\\[^\n])*?[^\s$\\]|[^\s$\\])\$(?!\d)/.exec(text) ?? /^\\\(([^\n]+?)\\\)/.exec(text);
        return found ? { type: "math", raw: found[0], formula: found[1] } : undefined;
      },
      renderer: (token) => renderMath(String(token.formula), false),
    },
    {
      name: "citation",
      level: "inline",
      start: (text) => text.indexOf("[^"),
      tokenizer(text) {
        const found = /^\[\^(\d{1,4})\](?!:)/.exec(text);
        return found ? { type: "citation", raw: found[0], number: found[1] } : undefined;
      },
      renderer: (token) =>
        `<sup><button type="button" class="cite" data-cite="${token.number}" aria-label="Source ${token.number}">${token.number}</button></sup>`,
    },
  ],
  renderer: {
    html: ({ text }) => escapeHtml(text),
    image({ href, text }) {
      return `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    table(token) {
      const cell = (one: (typeof token.header)[number], name: string) =>
        `<${name}${one.align ? ` class="align-${one.align}"` : ""}>${this.parser.parseInline(one.tokens)}</${name}>`;
      const head = token.header.map((one) => cell(one, "th")).join("");
      const body = token.rows.map((row) => `<tr>${row.map((one) => cell(one, "td")).join("")}</tr>`).join("");
      return `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
    },
    code({ text, lang }) {
      const name = (lang ?? "").trim().split(/\s+/)[0] ?? "";
      return (
        `<div class="code"><div class="code-head"><span>${escapeHtml(name || "text")}</span>` +
        `<button type="button" class="copy" data-copy="">Copy</button></div>` +
        `<pre tabindex="0" role="group" aria-label="Code"><code>${highlight(text, name)}</code></pre></div>`
      );
    },
  },
});

const purifyOptions = {
  ALLOWED_TAGS: (
    "a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre span strong sub sup table tbody td th thead tr ul " +
    "math mfrac mi mn mo mover mroot mrow mspace msqrt msub msubsup msup mtable mtd mtr munder munderover"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "start", "type", "data-cite", "data-copy", "aria-label", "tabindex", "role", "display", "mathvariant", "accent", "linethickness", "width"],
  FORBID_ATTR: ["style"],
  // No address is in these, so their values need not look like one.
  ADD_URI_SAFE_ATTR: ["start", "type", "tabindex", "display", "mathvariant", "accent", "linethickness", "width"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  if (!node.hasAttribute("href")) return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

function render(tokens: Token[], links: TokensList["links"]): string {
  const list = Object.assign([...tokens], { links });
  return DOMPurify.sanitize(marked.parser(list), purifyOptions);
}

/** Renders one text as a whole. */
export function renderMarkdown(text: string): string {
  return new MarkdownBlocks().update(text).join("");
}

/** Renders a growing text as blocks. A block that is finished is never rendered again, so its nodes can stay. */
export class MarkdownBlocks {
  private source = "";
  private frozenLength = 0;
  private frozen: string[] = [];
  private links: TokensList["links"] = Object.create(null);

  update(text: string): string[] {
    if (!text.startsWith(this.source.slice(0, this.frozenLength))) {
      this.frozen = [];
      this.frozenLength = 0;
      this.links = Object.create(null);
    }
    this.source = text;
    let lexed = marked.lexer(text.slice(this.frozenLength));
    const isNew = Object.keys(lexed.links).some((name) => !(name in this.links));
    this.links = Object.assign(this.links, lexed.links);
    if (isNew && this.frozenLength > 0) {
      // The address of a link came after it: render all blocks again. Those without the link stay the same.
      this.frozen = [];
      this.frozenLength = 0;
      lexed = marked.lexer(text);
    }
    // The last block may still grow, and so may the one before it: a list goes on after an empty line.
    const open = Math.max(0, lexed.length - 3);
    for (const token of lexed.slice(0, open)) {
      this.frozenLength += token.raw.length;
      if (token.type !== "space") this.frozen.push(render([token], this.links));
    }
    const rest = lexed.slice(open).filter((token) => token.type !== "space");
    return [...this.frozen, ...rest.map((token) => render([token], this.links))];
  }
}
