// Formulas: the usual part of TeX as MathML, which browsers draw themselves. What is not known is shown as it was written.

import { escapeHtml } from "./highlight";

function table(text: string): Map<string, string> {
  const parts = text.trim().split(/\s+/);
  return new Map(parts.flatMap((name, index) => (index % 2 ? [] : [[name, parts[index + 1] ?? ""] as const])));
}

const LETTERS = table(`alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ
  nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ
  Upsilon Υ Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ ell ℓ hbar ℏ emptyset ∅ Re ℜ Im ℑ aleph ℵ`);
const OPERATORS = table(`times × cdot · div ÷ pm ± mp ∓ leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ approx ≈ equiv ≡ sim ∼ propto ∝ to → rightarrow →
  leftarrow ← Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ iff ⇔ implies ⇒ mapsto ↦ in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ cup ∪ cap ∩
  setminus ∖ forall ∀ exists ∃ neg ¬ land ∧ wedge ∧ lor ∨ vee ∨ oplus ⊕ otimes ⊗ circ ∘ star ⋆ ast ∗ ldots … cdots ⋯ dots … vdots ⋮ mid ∣
  parallel ∥ perp ⊥ angle ∠ prime ′ langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ ll ≪ gg ≫ quad \u2003 qquad \u2003\u2003`);
const LARGE = table("sum ∑ prod ∏ int ∫ iint ∬ oint ∮ bigcup ⋃ bigcap ⋂ lim lim max max min min sup sup inf inf argmax argmax argmin argmin");
const NAMED = new Set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp det dim ker gcd deg Pr mod".split(" "));
const ACCENTS = table("hat ^ bar ¯ overline ¯ vec → tilde ~ dot ˙ ddot ¨");
const UPRIGHT = new Set(["text", "mathrm", "operatorname", "textbf", "mathbf", "mathit", "textit", "mathsf", "mathtt"]);
const BLACKBOARD = table("R ℝ N ℕ Z ℤ Q ℚ C ℂ P ℙ E 𝔼");
const MAX_LENGTH = 5_000;
const MAX_DEPTH = 40;

/** Returns a formula as MathML. */
export function renderMath(source: string, display: boolean): string {
  const shown = source.length > MAX_LENGTH ? `<mi mathvariant="normal">${escapeHtml(source)}</mi>` : new Parser(source).parse();
  return `<math${display ? ' display="block"' : ""}>${shown}</math>`;
}

class Parser {
  private tokens: string[];
  private at = 0;
  private depth = 0;

  constructor(source: string) {
    this.tokens = source.match(/\\[a-zA-Z]+|\\[^]|\d+(?:[.,]\d+)*|[^\s]/gu) ?? [];
  }

  parse(): string {
    let made = "";
    while (this.at < this.tokens.length) made += this.row() + this.takeStray();
    return `<mrow>${made}</mrow>`;
  }

  /** A closing brace or `&` without its beginning stays visible. */
  private takeStray(): string {
    const token = this.tokens[this.at++];
    return token === undefined ? "" : operator(token);
  }

  private row(): string {
    let made = "";
    while (this.at < this.tokens.length && !["}", "&", "\\\\", "\\right", "\\end"].includes(this.tokens[this.at] ?? "")) made += this.scripted();
    return made;
  }

  private scripted(): string {
    const isLarge = LARGE.has((this.tokens[this.at] ?? "").slice(1));
    const base = this.atom();
    let below: string | null = null;
    let above: string | null = null;
    for (;;) {
      const token = this.tokens[this.at];
      if (token === "^" && above === null) (this.at++, (above = this.atom()));
      else if (token === "_" && below === null) (this.at++, (below = this.atom()));
      else if (token === "'" && above === null) (this.at++, (above = operator("′")));
      else break;
    }
    if (below !== null && above !== null) return isLarge ? `<munderover>${base}${below}${above}</munderover>` : `<msubsup>${base}${below}${above}</msubsup>`;
    if (below !== null) return isLarge ? `<munder>${base}${below}</munder>` : `<msub>${base}${below}</msub>`;
    if (above !== null) return isLarge ? `<mover>${base}${above}</mover>` : `<msup>${base}${above}</msup>`;
    return base;
  }

  /** One element, or a group in braces. */
  private atom(): string {
    const token = this.tokens[this.at++];
    if (token === undefined) return "<mrow></mrow>";
    if (++this.depth > MAX_DEPTH) {
      this.depth--;
      return operator(token);
    }
    try {
      if (token === "{") {
        const made = this.row();
        if (this.tokens[this.at] === "}") this.at++;
        return `<mrow>${made}</mrow>`;
      }
      if (token.startsWith("\\")) return this.command(token.slice(1));
      if (/^\d/.test(token)) return `<mn>${escapeHtml(token)}</mn>`;
      return /^\p{L}$/u.test(token) ? identifier(token) : operator(token);
    } finally {
      this.depth--;
    }
  }

  private command(name: string): string {
    const letter = LETTERS.get(name);
    if (letter) return identifier(letter);
    const sign = OPERATORS.get(name);
    if (sign) return operator(sign);
    const large = LARGE.get(name);
    if (large) return operator(large);
    if (NAMED.has(name)) return `<mi mathvariant="normal">${name}</mi>`;
    if (name === "frac" || name === "dfrac" || name === "tfrac") return `<mfrac>${this.atom()}${this.atom()}</mfrac>`;
    if (name === "binom") return `${operator("(")}<mfrac linethickness="0">${this.atom()}${this.atom()}</mfrac>${operator(")")}`;
    if (name === "sqrt") return this.root();
    const accent = ACCENTS.get(name);
    if (accent) return `<mover accent="true">${this.atom()}${operator(accent)}</mover>`;
    if (UPRIGHT.has(name)) return `<mi mathvariant="normal">${escapeHtml(this.takeText())}</mi>`;
    if (name === "mathbb") {
      const text = this.takeText();
      return identifier(BLACKBOARD.get(text) ?? text);
    }
    if (name === "left" || name === "right") {
      const bracket = this.tokens[this.at++] ?? "";
      const inner = name === "left" ? this.row() : "";
      return `<mrow>${bracket === "." ? "" : operator(bracket.replace(/^\\([{}|])$/, "$1"))}${inner}</mrow>`;
    }
    if (name === "begin") return this.matrix();
    if (/^[,;:! ]$/.test(name)) return '<mspace width="0.2em"></mspace>';
    return /^[a-zA-Z]/.test(name) ? `<mi mathvariant="normal">\\${escapeHtml(name)}</mi>` : operator(name);
  }

  private root(): string {
    if (this.tokens[this.at] !== "[") return `<msqrt>${this.atom()}</msqrt>`;
    const end = this.tokens.indexOf("]", this.at);
    if (end < 0) return `<msqrt>${this.atom()}</msqrt>`;
    const index = new Parser(this.tokens.slice(this.at + 1, end).join(" ")).parse();
    this.at = end + 1;
    return `<mroot>${this.atom()}${index}</mroot>`;
  }

  /** The words in braces, with their blanks gone: formulas have none. */
  private takeText(): string {
    if (this.tokens[this.at] !== "{") return this.tokens[this.at++] ?? "";
    const end = this.tokens.indexOf("}", this.at);
    const text = this.tokens.slice(this.at + 1, end < 0 ? undefined : end).join("");
    this.at = end < 0 ? this.tokens.length : end + 1;
    return text;
  }

  private matrix(): string {
    const kind = this.takeText();
    let rows = "<mtr><mtd>";
    while (this.at < this.tokens.length && this.tokens[this.at] !== "\\end") {
      rows += this.row();
      const token = this.tokens[this.at];
      if (token === "&") rows += "</mtd><mtd>";
      else if (token === "\\\\") rows += "</mtd></mtr><mtr><mtd>";
      else if (token === "\\end") break;
      else if (token !== undefined) rows += operator(token);
      this.at++;
    }
    if (this.tokens[this.at] === "\\end") {
      this.at++;
      this.takeText();
    }
    const [open = "", close = ""] = { pmatrix: ["(", ")"], bmatrix: ["[", "]"], vmatrix: ["|", "|"], cases: ["{", ""] }[kind] ?? [];
    return `<mrow>${open && operator(open)}<mtable>${rows}</mtd></mtr></mtable>${close && operator(close)}</mrow>`;
  }
}

const identifier = (text: string) => `<mi>${escapeHtml(text)}</mi>`;
const operator = (text: string) => `<mo>${escapeHtml(text)}</mo>`;
