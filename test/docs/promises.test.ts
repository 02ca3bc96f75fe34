import { existsSync, readFileSync } from 'node:fs'
import { documents, root } from './snippets.js'
import { statementsOf } from './statements.js'
import { type NamedTest, testsOf } from './test-names.js'

/**
 * Every statement of a document stands in `promises/`, word for word, and under it what keeps it: tests by their names,
 * as `FILE › describe › test`, or a program of its own, as `FILE`; or, behind a dash, why it needs none.
 */
function keptIn(document: string): Map<string, string[]> {
  const name = document.replace(/\.md$/, '').replaceAll('/', '-')
  const [_heading, ...blocks] = readFileSync(`${root}test/docs/promises/${name}.txt`, 'utf8').split('\n\n')
  return new Map(
    blocks.map((block) => {
      const [statement = '', ...lines] = block.trimEnd().split('\n')
      return [statement, lines.map((line) => line.trim())]
    }),
  )
}

const known = new Map<string, NamedTest[]>()

/** What is wrong with something that is said to keep a promise; null when nothing is. */
function faultOf(keeper: string): string | null {
  if (keeper.startsWith('– ')) return null
  const [file = '', ...path] = keeper.split(' › ')
  if (!existsSync(root + file)) return `there is no ${file}`
  // Programs of their own: npm scripts run them.
  if (path.length === 0) return file.endsWith('.test.ts') ? `say which test of ${file}` : null
  if (!known.has(file)) known.set(file, testsOf(file))
  const found = known.get(file)?.find(({ name }) => name === path.join(' › '))
  if (found === undefined) return `${file} has no test '${path.join(' › ')}'`
  return found.isSkipped ? `${keeper} is skipped` : null
}

describe.each(documents)('what %s says', (document) => {
  const statements = statementsOf(document)
  const kept = keptIn(document)

  it('is kept: each statement stands in test/docs/promises with the tests that hold it', () => {
    expect(statements.filter((statement) => !kept.has(statement))).toEqual([])
    expect([...kept].filter(([, keepers]) => keepers.length === 0)).toEqual([])
  })

  it('is still said: no promise is kept that the document does not make', () => {
    expect([...kept.keys()].filter((statement) => !statements.includes(statement))).toEqual([])
  })

  it('is kept by tests that there are, none of them skipped', () => {
    expect([...kept.values()].flat().flatMap((keeper) => faultOf(keeper) ?? [])).toEqual([])
  })
})

describe('the reading of documents', () => {
  it('tells statements apart', () => {
    const markdown =
      '# A title\n\nFirst one. `second` one?\n**Third** one (see [x](y.md)). Fourth\nover lines.\n\n- an item.\n- another\n  item\n\n' +
      '| a | b |\n| --- | --- |\n| `c` | d. E |\n\n```ts\ncode. Here.\n```\n![picture](x.svg)\n'
    expect(statementsOf('x.md', markdown)).toEqual([
      'First one.',
      '`second` one?',
      '**Third** one (see [x](y.md)).',
      'Fourth over lines.',
      'an item.',
      'another item',
      '| `c` | d. E |',
    ])
  })

  it('finds tests by their names, and those that are skipped', () => {
    const tests = testsOf('test/docs/promises.test.ts')
    expect(tests).toContainEqual({
      name: 'the reading of documents › finds tests by their names, and those that are skipped',
      isSkipped: false,
    })
    expect(tests).toContainEqual({ name: 'what is left out › a skipped test', isSkipped: true })
    expect(faultOf('test/docs/promises.test.ts › what is left out › a skipped test')).toMatch(/is skipped$/)
    expect(faultOf('test/docs/promises.test.ts › no such test')).toMatch(/has no test/)
    expect(faultOf('test/docs/nowhere.test.ts › x')).toMatch(/there is no/)
    expect(faultOf('test/docs/promises.test.ts')).toMatch(/say which test/)
  })
})

// Only to be read by the test above: jest never gets here.
if (process.env.NEVER === 'always') {
  describe('what is left out', () => {
    it.skip('a skipped test', () => undefined)
  })
}
