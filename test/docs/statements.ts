import { readFileSync } from 'node:fs'
import { root } from './snippets.js'

/** One statement of a document: a sentence of a paragraph or list, or a row of a table. */
export interface Statement {
  /** The heading above it; a second heading of the same words is `… (2)`. Empty before the first heading. */
  heading: string
  /** Its number under that heading, from 1. */
  number: number
  text: string
}

/**
 * Reads the statements of a document in order. Headings, code, pictures, head rows of tables and the line of contents
 * state nothing; measured tables are left out, because the benchmark that writes them keeps them.
 */
export function readStatements(
  document: string,
  markdown = readFileSync(root + document, 'utf8'),
): Statement[] {
  const prose = markdown
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/^<!-- bench:(\w+) -->$[\s\S]*?^<!-- \/bench:\1 -->$/gm, '')
    .replaceAll(/^Contents: [\s\S]*?\n\n/gm, '')
    .replaceAll(/^!\[.*$/gm, '')
    .replaceAll(/^(\|.*\n)\|[\s:|-]+\|$/gm, '')
  const uses = new Map<string, number>()
  return splitAtHeadings(prose).flatMap(({ title, body }) => {
    const texts = splitBody(body)
    if (texts.length === 0) return []
    const use = (uses.get(title) ?? 0) + 1
    uses.set(title, use)
    const heading = use === 1 ? title : `${title} (${use})`
    return texts.map((text, index) => ({ heading, number: index + 1, text }))
  })
}

function splitAtHeadings(prose: string): { title: string; body: string }[] {
  const [intro = '', ...rest] = prose.split(/^#+ (.*)$/m)
  const sections = [{ title: '', body: intro }]
  for (let at = 0; at < rest.length; at += 2) {
    sections.push({ title: (rest[at] ?? '').trim(), body: rest[at + 1] ?? '' })
  }
  return sections
}

function splitBody(body: string): string[] {
  return body.split(/\n\s*\n/).flatMap((block) => {
    const parts = block.split(/\n(?=\||- |\d+\. )/)
    return parts.flatMap((part) => {
      const text = part.replaceAll(/\s+/g, ' ').trim()
      return text.startsWith('|') ? [text] : splitSentences(text.replace(/^(- |\d+\. )/, ''))
    })
  })
}

/** Splits after a full stop, a question or exclamation mark, with what closes after it, where a sentence begins. */
function splitSentences(text: string): string[] {
  return text.split(/(?<=[.!?][)\]*`"]*) (?=[*_`("[]*[\p{Lu}\d`])/u).filter(Boolean)
}
