import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { root } from './snippets.js'
import { readStatements, type Statement } from './statements.js'

/**
 * What keeps one statement of a document. `test/docs/promises/PAGE.txt` lists promises by heading and number, so that the
 * prose stands in one place; the digest shows that a sentence has changed since its keepers were last confirmed.
 */
export interface Promised {
  heading: string
  number: number
  /** The first eight digits of the SHA-256 of the statement. */
  digest: string
  /** Tests as `FILE › describe › test`, programs as `FILE`, or `– REASON` where a statement needs none. */
  keepers: string[]
}

/** Stands for the keepers of a new statement until its author has named them; the test refuses it. */
export const unnamedKeeper = '? name the test that keeps this statement, or "– REASON"'

const intro =
  'What keeps %s true: under each heading the number and digest of each statement, and the tests that keep it.\n' +
  '"–" says why a statement needs none. After a change of the prose: npm run promises\n'

const fileOf = (document: string) =>
  `${root}test/docs/promises/${document.replace(/\.md$/, '').replaceAll('/', '-')}.txt`

export function digestStatement(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}

export function readPromises(document: string): Promised[] {
  return existsSync(fileOf(document)) ? parsePromises(readFileSync(fileOf(document), 'utf8')) : []
}

export function parsePromises(file: string): Promised[] {
  const promises: Promised[] = []
  let heading = ''
  for (const line of file.split('\n')) {
    const [, title] = line.match(/^# ?(.*)$/) ?? []
    const [, number, digest] = line.match(/^(\d+) ([0-9a-f]{8})$/) ?? []
    if (title !== undefined) heading = title
    else if (number !== undefined && digest !== undefined)
      promises.push({ heading, number: Number(number), digest, keepers: [] })
    else if (line.startsWith('    ')) promises.at(-1)?.keepers.push(line.trim())
  }
  return promises
}

export function formatPromises(document: string, promises: readonly Promised[]): string {
  let heading: string | null = null
  const lines = promises.map((promised) => {
    const title = promised.heading === heading ? '' : `\n# ${promised.heading}`.trimEnd() + '\n'
    heading = promised.heading
    return `${title}${promised.number} ${promised.digest}\n${promised.keepers.map((keeper) => `    ${keeper}\n`).join('')}`
  })
  return intro.replace('%s', document) + lines.join('')
}

export interface Renewal {
  promises: Promised[]
  /** One line for each statement whose words changed, whose keepers are unnamed, or which is gone. */
  notes: string[]
}

/**
 * Gives each statement of a changed document the keepers that its former self had: first the statements whose words are
 * the same, wherever they moved; then the most similar ones; then the one with the same heading and number. A part of a
 * divided sentence gets the keepers of the whole.
 */
export function renewPromises(
  statements: readonly Statement[],
  former: readonly Promised[],
  formerText: (digest: string) => string | undefined,
): Renewal {
  const open = new Set(former)
  const taken = new Map<Statement, Promised>()
  const give = (statement: Statement, promised: Promised | undefined) => {
    if (promised === undefined) return
    open.delete(promised)
    taken.set(statement, promised)
  }
  for (const statement of statements) {
    const digest = digestStatement(statement.text)
    const same = [...open].filter((promised) => promised.digest === digest)
    give(statement, same.find(({ heading }) => heading === statement.heading) ?? same[0])
  }
  const left = () => statements.filter((statement) => !taken.has(statement))
  const pairs = left().flatMap((statement) =>
    [...open].map((promised) => ({
      statement,
      promised,
      likeness: compareWords(statement.text, formerText(promised.digest) ?? ''),
    })),
  )
  for (const { statement, promised, likeness } of pairs.sort((a, b) => b.likeness - a.likeness)) {
    if (likeness >= 0.4 && open.has(promised) && !taken.has(statement)) give(statement, promised)
  }
  for (const statement of left()) {
    give(
      statement,
      [...open].find(({ heading, number }) => heading === statement.heading && number === statement.number),
    )
  }
  // A sentence that was divided: its parts keep what the whole had.
  for (const statement of left()) {
    const whole = former.find(({ digest }) => measureShare(statement.text, formerText(digest) ?? '') >= 0.6)
    if (whole !== undefined) taken.set(statement, whole)
  }
  const notes = statements.flatMap((statement) => {
    const before = taken.get(statement)
    const place = `${statement.heading} ${statement.number}`
    if (before === undefined) return [`new: ${place}: ${statement.text}`]
    if (before.digest === digestStatement(statement.text)) return []
    return [`changed: ${place}: ${statement.text}\n    was: ${formerText(before.digest) ?? '?'}`]
  })
  return {
    promises: statements.map((statement) => ({
      heading: statement.heading,
      number: statement.number,
      digest: digestStatement(statement.text),
      keepers: taken.get(statement)?.keepers ?? [unnamedKeeper],
    })),
    notes: [
      ...notes,
      ...[...open].map(
        ({ heading, number, digest, keepers }) =>
          `gone: ${heading} ${number}: ${formerText(digest) ?? '?'}${keepers.map((keeper) => `\n    ${keeper}`).join('')}`,
      ),
    ],
  }
}

/** How alike two sentences are by their words, from 0 to 1. */
function compareWords(one: string, other: string): number {
  const [first, second] = [readWords(one), readWords(other)]
  return (2 * countCommon(first, second)) / (first.size + second.size || 1)
}

/** How much of a part's words a whole sentence has, from 0 to 1. */
function measureShare(part: string, whole: string): number {
  const words = readWords(part)
  return countCommon(words, readWords(whole)) / (words.size || 1)
}

function readWords(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])
}

function countCommon(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  return [...one].filter((word) => other.has(word)).length
}

function readCommitted(document: string, revision: string): string {
  return execFileSync('git', ['show', `${revision}:${document}`], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** Renews the promises of a document against a revision of it, and writes them. Returns the notes. */
export function rewritePromises(document: string, revision: string): string[] {
  const committed = () => {
    try {
      return readStatements(document, readCommitted(document, revision))
    } catch {
      return []
    }
  }
  const texts = new Map(committed().map(({ text }) => [digestStatement(text), text]))
  const { promises, notes } = renewPromises(readStatements(document), readPromises(document), (digest) =>
    texts.get(digest),
  )
  writeFileSync(fileOf(document), formatPromises(document, promises))
  return notes
}
