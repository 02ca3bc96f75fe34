import {
  CHECKBOX,
  CHECKED,
  CODE_BLOCK,
  CODE_FENCE,
  CODE_INLINE,
  EQUATION_BLOCK,
  EQUATION_INLINE,
  HREF,
  IMAGE,
  ITALIC_AST,
  ITALIC_UND,
  LANG,
  LINE_BREAK,
  LINK,
  parser,
  parser_end,
  parser_write,
  RAW_URL,
  SRC,
  START,
  STRIKE,
  STRONG_AST,
  STRONG_UND,
  type Attr,
  type Token,
} from 'streaming-markdown'

/** A part of a Markdown text. Texts are never HTML: whatever is no Markdown is text. */
export interface MarkdownNode {
  /** What the parser calls it. */
  token: Token
  children: (MarkdownNode | string)[]
  /** Of links and pictures, as it was written. */
  address?: string
  /** Of code. */
  language?: string
  /** The first number of a list. */
  start?: number
  isChecked?: boolean
}

/** The parser has room for 24 nested parts. */
const deepest = 20

const delimiters: Partial<Record<Token, string>> = {
  [ITALIC_AST]: '*',
  [ITALIC_UND]: '_',
  [STRONG_AST]: '**',
  [STRONG_UND]: '__',
  [STRIKE]: '~~',
  [CODE_INLINE]: '`',
}

/**
 * The blocks of a Markdown text; null where it has to be shown as it is written: it is nested too deeply, or a letter of it
 * would be lost. The time it takes grows with the length alone.
 */
export function parseMarkdown(text: string): MarkdownNode['children'] | null {
  const source = text.replaceAll('\r\n', '\n')
  const tree = new MarkdownTree(source)
  const markdown = parser({
    data: tree,
    add_token: (_, token) => tree.begin(token),
    end_token: () => tree.end(),
    add_text: (_, words) => tree.addText(words),
    set_attr: (_, name, value) => tree.setAttribute(name, value),
  })
  try {
    // Letter by letter, so that the tree knows where the parser is.
    for (const letter of source) {
      parser_write(markdown, letter)
      tree.at += letter.length
    }
    parser_end(markdown)
    tree.close()
  } catch (error) {
    if (error instanceof TooDeepError) return null
    throw error
  }
  // What a link without an end has taken in.
  const rest = markdown.pending.trim()
  if (keepLetters(rest) !== '') tree.addRest(rest)
  return keepLetters(tree.read) === keepLetters(source) ? tree.root.children : null
}

function keepLetters(text: string): string {
  return text.replaceAll(/\P{L}+/gu, '')
}

class TooDeepError extends Error {}

class MarkdownTree {
  readonly root: MarkdownNode = { token: LINE_BREAK, children: [] }
  /** How far the parser has come in the source. */
  at = 0
  /** What it has made of the source, as text. */
  read = ''
  readonly #source: string
  readonly #open: MarkdownNode[] = [this.root]
  /** Underlines of names such as `read_file`, which emphasise nothing. */
  readonly #inWord = new WeakSet<MarkdownNode>()

  constructor(source: string) {
    this.#source = source
  }

  get #top(): MarkdownNode {
    return this.#open.at(-1) ?? this.root
  }

  begin(token: Token): void {
    if (this.#open.length > deepest) throw new TooDeepError()
    if (token === LINE_BREAK && this.#source[this.at] === '>') this.read += 'br'
    const node: MarkdownNode = { token, children: [] }
    this.#top.children.push(node)
    this.#open.push(node)
    const sign = token === ITALIC_UND ? 1 : token === STRONG_UND ? 2 : 0
    if (sign > 0 && /[\p{L}\p{N}]/u.test(this.#source[this.at - sign - 1] ?? '')) this.#inWord.add(node)
    if (token === EQUATION_INLINE) node.children.push(this.#before === '$' ? '$' : '\\(')
    if (token === EQUATION_BLOCK) node.children.push(this.#before === '$' ? '$$\n' : '\\[\n')
  }

  get #before(): string {
    return this.#source[this.at - 1] ?? ''
  }

  /** Puts the signs back that turned out to mean nothing. */
  end(): void {
    const node = this.#open.pop()
    if (!node) return
    const now = this.#source[this.at] ?? ''
    if (node.token === EQUATION_INLINE)
      node.children.push(now === ')' ? '\\)' : this.#before === '$' ? '$' : '')
    if (node.token === EQUATION_BLOCK) node.children.push(now === ']' ? '\\]' : '$$')
    const sign = delimiters[node.token]
    if (sign !== undefined) {
      const isClosed = now === sign[0] || this.#before === sign[0]
      if (!isClosed || this.#inWord.has(node)) this.#dissolve(sign, node, isClosed ? sign : '')
    }
    if ((node.token === LINK || node.token === IMAGE) && node.address === undefined)
      this.#dissolve(node.token === LINK ? '[' : '![', node, this.#before === ']' ? ']' : '')
  }

  /** Ends what has no end. */
  close(): void {
    while (this.#open.length > 1) this.end()
  }

  #dissolve(sign: string, node: MarkdownNode, after: string): void {
    const { children } = this.#top
    children.splice(children.lastIndexOf(node), 1)
    for (const part of [sign, ...node.children, after]) append(children, part)
  }

  addText(words: string): void {
    this.read += words
    append(this.#top.children, words)
  }

  addRest(words: string): void {
    this.read += words
    append(this.root.children, words)
  }

  setAttribute(name: Attr, value: string): void {
    const node = this.#top
    // The text of such a link is the address itself.
    if (node.token !== RAW_URL) this.read += name === CHECKED && node.token === CHECKBOX ? 'x' : value
    if (name === HREF || name === SRC) node.address = value
    else if (name === LANG && (node.token === CODE_FENCE || node.token === CODE_BLOCK)) node.language = value
    else if (name === START) node.start = Number(value)
    else if (name === CHECKED) node.isChecked = true
  }
}

function append(children: MarkdownNode['children'], part: MarkdownNode | string): void {
  if (part === '') return
  const last = children.at(-1)
  if (typeof part === 'string' && typeof last === 'string') children[children.length - 1] = last + part
  else children.push(part)
}
