import { existsSync } from 'node:fs'
import fc from 'fast-check'
import {
  digestStatement,
  formatPromises,
  type Promised,
  parsePromises,
  readPromises,
  renewPromises,
  rewritePromises,
  unnamedKeeper,
} from './promises.js'
import { documents, root } from './snippets.js'
import { readStatements } from './statements.js'
import { type NamedTest, testsOf } from './test-names.js'

const known = new Map<string, NamedTest[]>()

/** Says what is wrong with a keeper of a promise; null when nothing is. */
function findFault(keeper: string): string | null {
  if (keeper === unnamedKeeper) return keeper
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
  // A revision: the promises are renewed against the document as it was there.
  const revision = process.env.STATEWRIGHT_PROMISES
  if (revision !== undefined) {
    const notes = rewritePromises(document, revision)
    if (notes.length > 0) process.stderr.write(`${document}\n  ${notes.join('\n  ')}\n`)
  }
  const promises = readPromises(document)

  it('is kept: each statement has its entry in test/docs/promises; npm run promises renews them', () => {
    expect(promises.map(({ heading, number, digest }) => `${heading} › ${number} ${digest}`)).toEqual(
      readStatements(document).map(
        ({ heading, number, text }) => `${heading} › ${number} ${digestStatement(text)}`,
      ),
    )
    expect(promises.filter(({ keepers }) => keepers.length === 0)).toEqual([])
  })

  it('is kept by tests that there are, none of them skipped', () => {
    expect(promises.flatMap(({ keepers }) => keepers).flatMap((keeper) => findFault(keeper) ?? [])).toEqual(
      [],
    )
  })
})

describe('the reading of documents', () => {
  it('tells statements apart, and numbers them under their headings', () => {
    const markdown =
      '# A title\n\nFirst one. `second` one?\n**Third** one (see [x](y.md)). Fourth\nover lines.\n\n- an item.\n- another\n  item\n\n' +
      '## A part\n\n| a | b |\n| --- | --- |\n| `c` | d. E |\n\n```ts\ncode. Here.\n```\n![picture](x.svg)\n\n## A part\n\nMore.\n'
    expect(readStatements('x.md', markdown)).toEqual([
      { heading: 'A title', number: 1, text: 'First one.' },
      { heading: 'A title', number: 2, text: '`second` one?' },
      { heading: 'A title', number: 3, text: '**Third** one (see [x](y.md)).' },
      { heading: 'A title', number: 4, text: 'Fourth over lines.' },
      { heading: 'A title', number: 5, text: 'an item.' },
      { heading: 'A title', number: 6, text: 'another item' },
      { heading: 'A part', number: 1, text: '| `c` | d. E |' },
      { heading: 'A part (2)', number: 1, text: 'More.' },
    ])
  })

  it('finds tests by their names, and those that are skipped', () => {
    const tests = testsOf('test/docs/promises.test.ts')
    expect(tests).toContainEqual({
      name: 'the reading of documents › finds tests by their names, and those that are skipped',
      isSkipped: false,
    })
    expect(tests).toContainEqual({ name: 'what is left out › a skipped test', isSkipped: true })
    expect(findFault('test/docs/promises.test.ts › what is left out › a skipped test')).toMatch(/is skipped$/)
    expect(findFault('test/docs/promises.test.ts › no such test')).toMatch(/has no test/)
    expect(findFault('test/docs/nowhere.test.ts › x')).toMatch(/there is no/)
    expect(findFault('test/docs/promises.test.ts')).toMatch(/say which test/)
    expect(findFault(unnamedKeeper)).toBe(unnamedKeeper)
  })
})

describe('renewing promises', () => {
  const promise = (heading: string, number: number, text: string, keeper: string): Promised => ({
    heading,
    number,
    digest: digestStatement(text),
    keepers: [keeper],
  })
  const renew = (markdown: string, former: { heading: string; number: number; text: string }[]) => {
    const texts = new Map(former.map(({ text }) => [digestStatement(text), text]))
    return renewPromises(
      readStatements('x.md', markdown),
      former.map(({ heading, number, text }) => promise(heading, number, text, `keeps: ${text}`)),
      (digest) => texts.get(digest),
    )
  }

  it('follows a statement that moved, and one whose words changed', () => {
    const { promises, notes } = renew(
      '# New\n\nA line before.\n\nCats sleep all day.\n\n# Old\n\nDogs bark at night loudly.\n',
      [
        { heading: 'Old', number: 1, text: 'Cats sleep all day.' },
        { heading: 'Old', number: 2, text: 'Dogs bark at night.' },
      ],
    )
    expect(promises.map(({ heading, number, keepers }) => [heading, number, ...keepers])).toEqual([
      ['New', 1, unnamedKeeper],
      ['New', 2, 'keeps: Cats sleep all day.'],
      ['Old', 1, 'keeps: Dogs bark at night.'],
    ])
    expect(notes).toEqual([
      'new: New 1: A line before.',
      'changed: Old 1: Dogs bark at night loudly.\n    was: Dogs bark at night.',
    ])
  })

  it('gives both parts of a divided sentence what kept the whole', () => {
    const former = [
      { heading: 'A', number: 1, text: 'A call runs once, and its result is kept in the log for good.' },
    ]
    const { promises } = renew('# A\n\nA call runs once. Its result is kept in the log.\n', former)
    expect(promises.map(({ keepers }) => keepers)).toEqual([
      ['keeps: A call runs once, and its result is kept in the log for good.'],
      ['keeps: A call runs once, and its result is kept in the log for good.'],
    ])
  })

  it('names what is no longer said, with its keepers', () => {
    expect(
      renew('# A\n\nOne.\n', [
        { heading: 'A', number: 1, text: 'One.' },
        { heading: 'A', number: 2, text: 'Two.' },
      ]).notes,
    ).toEqual(['gone: A 2: Two.\n    keeps: Two.'])
  })

  it('loses no keeper, whatever moves', () => {
    const sentences = fc.uniqueArray(
      fc.array(fc.constantFrom('cat', 'dog', 'bird', 'fish', 'ant'), { minLength: 1, maxLength: 4 }),
      { minLength: 1, maxLength: 8, selector: (words) => words.join(' ') },
    )
    fc.assert(
      fc.property(sentences, fc.infiniteStream(fc.nat()), (list, order) => {
        const former = list.map((words, index) => ({
          heading: 'H',
          number: index + 1,
          text: `X ${words.join(' ')}.`,
        }))
        const moved = former.map((each) => ({ each, at: order.next().value })).sort((a, b) => a.at - b.at)
        const { promises, notes } = renew(
          `# H\n\n${moved.map(({ each }) => each.text).join('\n\n')}\n`,
          former,
        )
        expect(promises.map(({ keepers }) => keepers)).toEqual(
          moved.map(({ each }) => [`keeps: ${each.text}`]),
        )
        expect(notes).toEqual([])
      }),
    )
  })

  it('writes a file that it reads again as it was', () => {
    const promises = [
      promise('', 1, 'Before the first heading.', 'a.test.ts › b › c'),
      promise('A', 1, 'One.', '– a definition'),
      promise('A', 2, 'Two.', 'scripts/x.mjs'),
    ]
    expect(parsePromises(formatPromises('x.md', promises))).toEqual(promises)
  })
})

// Only to be read by the test above: jest never gets here.
if (process.env.NEVER === 'always') {
  describe('what is left out', () => {
    it.skip('a skipped test', () => undefined)
  })
}
