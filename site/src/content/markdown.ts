/** The heading of a page, and the text after it. */
export function splitTitle(markdown: string): { title: string; body: string } {
  const [, heading = '', body = markdown] = /^#\s+(.*)\n([^]*)$/.exec(markdown.trimStart()) ?? []
  return { title: toPlainText(heading), body: body.trimStart() }
}

/** The first paragraph in at most 300 characters, for search engines and `llms.txt`. */
export function describe(body: string): string {
  const paragraph = body.split(/\n\s*\n/).find((part) => /^[\p{L}`*["([]/u.test(part.trim())) ?? ''
  const text = toPlainText(paragraph.trim().replaceAll(/\s+/g, ' '))
  return text.length <= 300 ? text : `${text.slice(0, 297).replace(/\s\S*$/, '')} …`
}

/** The section under a second-level heading, without the heading. */
export function sectionOf(markdown: string, heading: string): string {
  const [, after] = `\n${markdown}`.split(`\n## ${heading}\n`)
  if (after === undefined) throw new Error(`The document does not have a section "${heading}".`)
  return (after.split(/\n## /)[0] ?? '').trim()
}

/** The cells of each table row in a text, without header rows. */
export function rowsOf(markdown: string): string[][] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.slice(2, -2).split(' | '))
}

function toPlainText(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\\([<>[\]_*])/g, '$1')
    .replaceAll(/\*\*|`/g, '')
}
