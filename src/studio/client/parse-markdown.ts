import { Lexer, type MarkedToken, type Tokens } from 'marked'

/** `as-written` is a block that is shown as plain text, because parsing it would drop letters. */
export type MarkdownToken = MarkedToken | { type: 'as-written'; raw: string }

/** Deeper nesting is not useful and may be an attack. */
const maxDepth = 20

/** Returns null when the text is nested too deeply to render. */
export function parseMarkdown(text: string): MarkdownToken[] | null {
  let blocks: MarkedToken[]
  try {
    blocks = new Lexer({ gfm: true }).lex(text) as MarkedToken[]
  } catch (error) {
    // The lexer recurses once per level of nesting.
    if (error instanceof RangeError) return null
    throw error
  }
  if (measureDepth(blocks) > maxDepth) return null
  return blocks.map((block) => {
    const isComplete = keepLetters(readText(block)) === keepLetters(block.raw)
    return isComplete ? block : { type: 'as-written', raw: block.raw }
  })
}

/** The tokens inside a token, which are list items, table cells or inline parts. */
export function listInner(token: MarkdownToken): MarkdownToken[] {
  switch (token.type) {
    case 'list':
      return token.items
    case 'table':
      return [token.header, ...token.rows].flat().flatMap(({ tokens }) => tokens as MarkedToken[])
    default:
      return 'tokens' in token ? ((token.tokens ?? []) as MarkedToken[]) : []
  }
}

function measureDepth(tokens: readonly MarkdownToken[]): number {
  return tokens.reduce((most, token) => Math.max(most, 1 + measureDepth(listInner(token))), 0)
}

/** The visible text of a token, in source order. */
export function readText(token: MarkdownToken): string {
  const inner = listInner(token).map(readText).join('')
  switch (token.type) {
    case 'code':
      return `${token.lang ?? ''}${token.text}`
    case 'codespan':
    case 'escape':
      return token.text
    case 'link':
      return isBareLink(token) ? inner : `${inner}${token.href}${token.title ?? ''}`
    case 'image':
      return `${token.text}${token.href}${token.title ?? ''}`
    case 'text':
      return token.tokens ? inner : token.text
    case 'checkbox':
    case 'html':
    case 'def':
    case 'as-written':
      return token.raw
    default:
      return inner
  }
}

const isBareLink = ({ raw }: Tokens.Link): boolean => !raw.startsWith('[')

function keepLetters(text: string): string {
  return text.replaceAll(/\P{L}+/gu, '')
}
