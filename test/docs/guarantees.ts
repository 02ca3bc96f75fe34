import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { agentInvariants } from '../../src/testing/index.js'
import { pairsOf } from '../pairs/cell.js'
import { featureNames } from '../pairs/features.js'
import { readPromises } from './promises.js'
import { documents, root } from './snippets.js'
import { readStatements } from './statements.js'

const read = (name: string): string => readFileSync(root + name, 'utf8')
const readJson = (name: string): unknown => JSON.parse(read(name))
const heading = 'What it guarantees'

/** How much one suite tries. */
interface Count {
  count: number
  what: string
  command: string
}

/** Throws where nothing was counted: a guarantee without its count is none. */
export function needCount(count: number | undefined, what: string): number {
  if (count === undefined || !Number.isSafeInteger(count) || count <= 0)
    throw new Error(`No count of: ${what}`)
  return count
}

/** The whole number that the first group of a pattern finds in a file. */
function findNumber(name: string, pattern: RegExp): number | undefined {
  const [, digits] = pattern.exec(read(name)) ?? []
  return digits === undefined ? undefined : Number(digits)
}

export async function countProofs(): Promise<Count[]> {
  const killers = readJson('test/mutation/killers.json') as Record<string, unknown>
  const { cases } = (await import(new URL('../../conformance/cases/index.mjs', import.meta.url).href)) as {
    cases: unknown[]
  }
  const statements = documents.flatMap((document) => readPromises(document))
  const held = statements.filter(({ keepers }) => keepers.some((keeper) => keeper.startsWith('test/')))
  const paths = (pattern: RegExp) => findNumber('test/paths/pairs.txt', pattern)
  const counts: [number | undefined, string, string][] = [
    [paths(/ (\d+) of \d+ states,/), 'states of the chart, each reached by a generated path', 'test:graph'],
    [paths(/ (\d+) of \d+ transitions,/), 'transitions, each taken on the live agent', 'test:graph'],
    [paths(/ by (\d+) paths with/), 'generated paths', 'test:graph'],
    [
      paths(/^explored (\d+) states/m),
      'reachable configurations in which every rule is checked',
      'test:graph',
    ],
    [paths(/^explored \d+ states and (\d+) events/m), 'events tried in these configurations', 'test:graph'],
    [agentInvariants.length, 'rules that hold in each of them', 'test:graph'],
    [Object.keys(killers).length, 'mutants of the chart, each killed by a path or a rule', 'test:mutation'],
    [pairsOf(featureNames).length, `pairs of ${featureNames.length} features, each played`, 'test:pairs'],
    [findNumber('test/crash/main.mjs', /kills >= (\d+)/), 'kills of a process, or more', 'test:crash'],
    [
      findNumber('package.json', /simulate\.mjs --seeds (\d+)/),
      'simulated stories, in which processes die, stand still and come back',
      'test:simulation',
    ],
    [
      findNumber('docs/guardrails-measured.md', /^\| all \| (\d+) \| \d+ \| \d+ \| 0 \|/m),
      'recorded sessions that ended well, of which the guards halt none',
      'check:guards',
    ],
    [cases.length, 'cases of the conformance suite, each with a right and a wrong loop', 'test:conformance'],
    // Rounded down, because most changes of a document change the number.
    [
      Math.floor(held.length / 500) * 500,
      'statements of the documents, or more, that name the tests which hold them',
      'test -- test/docs/promises.test.ts',
    ],
  ]
  return counts.map(([count, what, command]) => ({ count: needCount(count, what), what, command }))
}

/** The rules of the machine that say the same as a claim of the README, by the words with which the claim begins. */
const rulesOf: Record<string, readonly string[]> = {
  'It stops': [
    'steps never exceed maxSteps, or by one to conclude',
    'the calls that run never exceed the caps on tool calls',
    'no request is made past the step limit or the budget',
    'no step begins past the deadline, or when a pause was asked for',
  ],
  'Cancel always wins': ['nothing starts when a run ends, and nothing runs while it rests'],
  'Incomplete output has no effect': [
    'only whole calls that wait for no answer are started, and all of them',
    'a truncated answer is continued as long as recoveries are left',
  ],
  'Paid output is kept': ['the partial text of a stopped answer is kept and marked'],
  'The history stays valid': [
    'a model is only asked with a valid history',
    'a result is never replaced',
    'each call is told its one result',
  ],
  'It survives crashes': [
    'no call is started twice, unless the run is resumed',
    'a resumed run starts no call again that may not run twice',
  ],
  'Shields fail closed': ['what no shield has cleared is neither told nor in the transcript'],
  '`run.result` never rejects for an agent outcome': [
    'one terminal event, the last, and it says how the run ended',
    'a result has what the type of its state says',
    'every final state but COMPLETED and CANCELLED is explained by one error event',
  ],
  'The machine is pure': ['no event breaks the machine'],
}

export interface Claim {
  name: string
  statements: string[]
  tests: string[]
}

/** A test of the library: no reason in words, and no test of the documents' links. */
const isProof = (keeper: string): boolean =>
  keeper.startsWith('test/') && !keeper.startsWith('test/package/links.test.ts')

/** The claims of the README, each with its statements and the tests that these name. */
export function readClaims(): Claim[] {
  const kept = readPromises('README.md').filter((promised) => promised.heading === heading)
  const claims: Claim[] = []
  for (const { text, number } of readStatements('README.md').filter((one) => one.heading === heading)) {
    // It leads to another page, and is part of no claim.
    if (text.startsWith('[')) continue
    const [, name] = /^\*\*(.+?)\*\*/.exec(text) ?? []
    if (name) claims.push({ name, statements: [], tests: [] })
    const claim = claims.at(-1)
    const keepers = kept.find((promised) => promised.number === number)?.keepers ?? []
    claim?.statements.push(text)
    claim?.tests.push(...keepers.filter((keeper) => isProof(keeper) && !claim.tests.includes(keeper)))
  }
  return claims
}

/** Links of the README, as they are from `docs/`. */
const moveLinks = (text: string): string => text.replaceAll('](docs/', '](')

export function renderClaim({ name, statements, tests }: Claim): string {
  const rules = rulesOf[name]
  if (!rules || tests.length === 0) throw new Error(`The claim "${name}" has no ${rules ? 'tests' : 'rules'}`)
  const gone = rules.filter((rule) => !agentInvariants.some((known) => known.name === rule))
  if (gone.length > 0) throw new Error(`The rules of "${name}" are gone: ${gone.join(', ')}`)
  return [
    `### ${name}`,
    moveLinks(statements.join(' ')),
    [
      'Rules of the machine, checked in every reachable configuration:',
      ...rules.map((rule) => `- ${rule}`),
    ].join('\n'),
    ['Tests:', ...tests.map((keeper) => `- \`${keeper}\``)].join('\n'),
  ].join('\n\n')
}

/** What the page has below the line that says when it was counted. */
export async function renderGuarantees(): Promise<string> {
  const counts = (await countProofs()).map(
    ({ count, what, command }) => `| ${count.toLocaleString('en')} | ${what} | \`npm run ${command}\` |`,
  )
  return [
    ['| Count | Of what | Tried by |', '| ---: | --- | --- |', ...counts].join('\n'),
    ...readClaims().map(renderClaim),
  ].join('\n\n')
}

/** The day and the commit of a count. */
export function renderStamp(): string {
  const commit = execFileSync('git', ['log', '-1', '--format=%h'], { cwd: root, encoding: 'utf8' }).trim()
  return `Counted on ${new Date().toISOString().slice(0, 10)}, after commit ${commit}.`
}
