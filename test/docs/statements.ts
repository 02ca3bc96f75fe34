import { readFileSync } from 'node:fs'
import { root } from './snippets.js'

/**
 * What a document says, one statement after the other: sentences of paragraphs and lists, rows of tables. Headings, code,
 * pictures, the head rows of tables and the line of contents say nothing; measured tables are held by what writes them.
 */
export function statementsOf(document: string, markdown = readFileSync(root + document, 'utf8')): string[] {
  const prose = markdown
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/^<!-- bench:(\w+) -->$[\s\S]*?^<!-- \/bench:\1 -->$/gm, '')
    .replaceAll(/^Contents: [\s\S]*?\n\n/gm, '')
    .replaceAll(/^(#|!\[).*$/gm, '')
    .replaceAll(/^(\|.*\n)\|[\s:|-]+\|$/gm, '')
  return prose.split(/\n\s*\n/).flatMap((block) => {
    const parts = block.split(/\n(?=\||- |\d+\. )/)
    return parts.flatMap((part) => {
      const text = part.replaceAll(/\s+/g, ' ').trim()
      return text.startsWith('|') ? [text] : sentencesOf(text.replace(/^(- |\d+\. )/, ''))
    })
  })
}

/** A sentence ends at a full stop, a question or exclamation mark, with what closes after it, before one that begins. */
function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.!?][)\]*`"]*) (?=[*_`("[]*[\p{Lu}\d`])/u).filter(Boolean)
}
