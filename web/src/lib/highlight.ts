// A small syntax highlighter: comments, strings, numbers and keywords of common languages. It never changes the text.

const words = (text: string) => new Set(text.split(" "));
const C_LIKE = words(
  "as async await break case catch class const continue default delete do else enum export extends extern false final finally fn for from func function go if implements import in instanceof interface let loop match mod mut namespace new nil null of package private protected pub public return self static struct super switch this throw trait true try type typedef typeof undefined union unsafe use using var void while with yield bool boolean byte char double float int long short string",
);
const PYTHON = words(
  "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self",
);
const SHELL = words("if then else elif fi for in do done while case esac function return export local set cd echo exit sudo");
const SQL = words(
  "select from where and or not in is null insert into values update set delete create table index view drop alter add primary key foreign references join left right inner outer on group by order having limit offset as distinct union all case when then else end begin commit rollback with",
);
const RUBY = words("def end if elsif else unless while do begin rescue ensure class module return yield nil true false self require attr_accessor");

interface Language {
  keywords: Set<string>;
  comment: RegExp | null;
  ignoresCase?: boolean;
}

const SLASHES = /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y;
const HASH = /#[^\n]*/y;
const languages: Record<string, Language> = {};
function define(names: string, language: Language): void {
  for (const name of names.split(" ")) languages[name] = language;
}
define("js javascript jsx ts typescript tsx svelte vue c h cpp c++ cs csharp java kotlin go rust rs swift php scala dart json jsonc css scss", {
  keywords: C_LIKE,
  comment: SLASHES,
});
define("py python", { keywords: PYTHON, comment: HASH });
define("sh bash shell zsh console fish dockerfile make makefile", { keywords: SHELL, comment: HASH });
define("sql sqlite postgresql", { keywords: SQL, comment: /--[^\n]*/y, ignoresCase: true });
define("rb ruby", { keywords: RUBY, comment: HASH });
define("yaml yml toml ini", { keywords: words("true false null yes no on off"), comment: HASH });
define("html xml svg", { keywords: new Set(), comment: /<!--[\s\S]*?(?:-->|$)/y });

const STRING = /"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?/y;
const NUMBER = /\b(?:0x[\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b/y;
const WORD = /[A-Za-z_$][\w$]*/y;
const MAX_LENGTH = 60_000;

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[one] ?? one);
}

/** Returns the code as HTML with spans for its parts; unknown languages stay plain. */
export function highlight(code: string, name: string): string {
  if (name === "diff") return highlightDiff(code);
  const language = languages[name.toLowerCase()];
  if (!language || code.length > MAX_LENGTH) return escapeHtml(code);
  let html = "";
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    return pattern.exec(code)?.[0] ?? "";
  };
  while (at < code.length) {
    let part = language.comment ? take(language.comment) : "";
    let kind = "c";
    if (!part) [part, kind] = [take(STRING), "s"];
    if (!part) [part, kind] = [take(NUMBER), "n"];
    if (!part) {
      part = take(WORD);
      const known = language.keywords.has(language.ignoresCase ? part.toLowerCase() : part);
      kind = known ? "k" : code[at + part.length] === "(" ? "f" : "";
    }
    if (!part) [part, kind] = [code[at] ?? "", ""];
    html += kind ? `<span class="hl-${kind}">${escapeHtml(part)}</span>` : escapeHtml(part);
    at += part.length;
  }
  return html;
}

function highlightDiff(code: string): string {
  return code
    .split("\n")
    .map((line) => {
      const kind = /^(\+\+\+|---|@@)/.test(line) ? "c" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
      return kind ? `<span class="hl-${kind}">${escapeHtml(line)}</span>` : escapeHtml(line);
    })
    .join("\n");
}
