import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { agentInvariants } from '../../src/testing/index.js'
import { pairsOf } from '../pairs/cell.js'
import { featureNames } from '../pairs/features.js'
import { root } from './snippets.js'
import { testsOf } from './test-names.js'

const read = (name: string): string => readFileSync(root + name, 'utf8')
const readJson = (name: string): unknown => JSON.parse(read(name))
/** The number of tries in one suite. */
interface Count {
  count: number
  what: string
  command: string
}

/** Throws when nothing was counted. A guarantee needs a count. */
export function needCount(count: number | undefined, what: string): number {
  if (count === undefined || !Number.isSafeInteger(count) || count <= 0)
    throw new Error(`No count of: ${what}`)
  return count
}

/** The integer in the first group of a pattern in a file. */
function findNumber(name: string, pattern: RegExp): number | undefined {
  const [, digits] = pattern.exec(read(name)) ?? []
  return digits === undefined ? undefined : Number(digits)
}

export async function countProofs(): Promise<Count[]> {
  const killers = readJson('test/mutation/killers.json') as Record<string, unknown>
  const { cases } = (await import(
    new URL('../../packages/agent-loop-conformance/cases/index.mjs', import.meta.url).href
  )) as {
    cases: unknown[]
  }
  const paths = (pattern: RegExp) => findNumber('test/paths/pairs.txt', pattern)
  const counts: [number | undefined, string, string][] = [
    [paths(/ (\d+) of \d+ states,/), 'states of the chart, each reached by a generated path', 'graph'],
    [paths(/ (\d+) of \d+ transitions,/), 'transitions, each taken by the live agent', 'graph'],
    [paths(/ by (\d+) paths with/), 'generated paths', 'graph'],
    [paths(/^explored (\d+) states/m), 'reachable configurations in which every rule is checked', 'graph'],
    [paths(/^explored \d+ states and (\d+) events/m), 'events tried in these configurations', 'graph'],
    [agentInvariants.length, 'rules that hold in each configuration', 'graph'],
    [Object.keys(killers).length, 'mutants of the chart, each detected by a path or a rule', 'mutation'],
    [pairsOf(featureNames).length, `pairs of ${featureNames.length} features, each tested together`, 'pairs'],
    [findNumber('test/crash/main.mjs', /kills >= (\d+)/), 'process kills, at least', 'crash'],
    [
      findNumber('scripts/tasks.mjs', /simulate\.mjs --seeds (\d+)/),
      'simulations, in which processes die, hang and return',
      'simulation',
    ],
    [
      findNumber('docs/guardrails-measured.md', /^\| all \| (\d+) \| \d+ \| \d+ \| 0 \|/m),
      'successful recorded sessions, none of which the guards halt',
      'guards',
    ],
    [cases.length, 'conformance cases, each verified with a correct and a faulty loop', 'conformance'],
  ]
  return counts.map(([count, what, command]) => ({ count: needCount(count, what), what, command }))
}

/** The guarantees, each with its text and the machine rules and library tests that verify it. */
const claims: Record<string, Omit<Claim, 'name'>> = {
  'It stops': {
    text: 'you can limit steps, time, tokens and cost. If an agent repeats itself, it is first nudged, then its calls are blocked, and then the run pauses. `resume()` continues it ([configuration](configuration.md), [guardrails](guardrails.md)).',
    rules: [
      'steps exceed maxSteps by at most one, for the final answer',
      'executed calls never exceed the tool-call caps',
      'no request exceeds the step limit or the budget',
      'no step starts after the deadline or a pause request',
    ],
    tests: [
      'test/scenarios/steps.test.ts › limits.maxSteps › of %i allows exactly that many model calls, and the last batch completes',
      'test/scenarios/interruptions.test.ts › the deadline › applies to the run, not to a step',
      'test/scenarios/budget.test.ts › a budget › ends the run right after the response that reaches it: %s',
      'test/scenarios/progress.test.ts › the same call with a clock in its result › is nudged, then refused, then pauses the run with an answer',
      'test/scenarios/progress.test.ts › the same call with a clock in its result › continues after a resume, with that guard reset',
    ],
  },
  'Cancel always wins': {
    text: 'a run can be cancelled in every state. After that, no tool call or model request starts.',
    rules: ['no actor starts when a run ends, or runs while the run is settled'],
    tests: [
      'test/graph/structure.test.ts › CANCEL is handled at the root, first and without a guard, and nowhere else',
      'test/machine/rules.test.ts › the rules of the machine, over random runs › hold: every event is handled, the history is valid when settled, one terminal event, cancel takes precedence',
    ],
  },
  'Incomplete output has no effect': {
    text: 'a truncated call never runs, and a retry discards the text of the failed attempt.',
    rules: [
      'all complete calls that need no answer are started, and no others',
      'a truncated answer is continued as long as recovery attempts remain',
    ],
    tests: [
      'test/scenarios/endings.test.ts › a truncated call › is never executed, even if its JSON parses: it is closed, and the model is asked again',
      'test/scenarios/retries.test.ts › a recoverable failure › can be a connection that breaks during an answer: the text restarts, and is shown once',
    ],
  },
  'Paid output is kept': {
    text: 'the answer that exceeds a budget stays in the result. So does the partial text of a cancelled answer.',
    rules: ['the partial text of a stopped answer is kept and marked'],
    tests: [
      'test/scenarios/budget.test.ts › a budget › keeps the answer that crosses the limit, and completes with onOvershoot complete',
      'test/scenarios/interruptions.test.ts › %s › ends an active request immediately: the text so far is kept, marked and paid for',
    ],
  },
  'The history stays valid': {
    text: 'every call has exactly one result, no matter how the run ends. Every provider therefore accepts the history.',
    rules: [
      'every request has a valid history',
      'a result is never replaced',
      'each call gets exactly one result event',
    ],
    tests: [
      'test/machine/rules.test.ts › the rules of the machine, over random runs › hold: every event is handled, the history is valid when settled, one terminal event, cancel takes precedence',
      'test/scenarios/endings.test.ts › the end of a turn › always leaves a history that other messages can follow',
      'test/rehearsal/strict.test.ts › a strict rehearsal refuses %s with a message',
    ],
  },
  'It survives crashes': {
    text: 'with a store, another process resumes the run where it stopped. A call that must not be repeated never runs twice ([resume](resume.md)).',
    rules: [
      'no call starts twice unless the run is resumed',
      'a resumed run never restarts a call that must not run twice',
    ],
    tests: [
      'test/scenarios/durable-hostile.test.ts › a process that dies after any record › the next process reaches the same end at the same cost, and repeats no finished call',
      'test/cli/bin.test.ts › a killed run is interrupted, and resume continues it',
    ],
  },
  'Shields fail closed': {
    text: 'content that shields have not checked is never emitted ([shields](shields.md)).',
    rules: ['content pending review is neither announced nor in the transcript'],
    tests: [
      'test/scenarios/shields.test.ts › a shield that %s blocks unless it fails open',
      'test/scenarios/shielded-calls.test.ts › a run that stops before shields have checked the calls does not reveal them › %s',
    ],
  },
  '`run.result` never rejects for an agent outcome': {
    text: 'the result has the `state` in which the run settled, and a one-word `reason`. If you prefer exceptions, `orThrow(await run.result)` throws `MaxStepsError`, `BudgetExceededError`, `TimedOutError`, `GuardrailError`, …, each with the result.',
    rules: [
      'the last event of a run is its only terminal event and states how it ended',
      'a result has the fields that its state requires',
      'every final state except COMPLETED and CANCELLED has exactly one error event',
    ],
    tests: [
      'test/scenarios/failures.test.ts › a permanent failure › %s ends the run immediately, with a code and a remedy',
      'test/scenarios/cost.test.ts › the cost › is required: without a known price, a run is refused before anything is sent',
      'test/scenarios/subscribers.test.ts › orThrow › throws a %p that contains the result',
    ],
  },
  'The machine is pure': {
    text: "replaying the log of the machine's events reproduces the run exactly. Tests generated from the machine's graph take every transition on the live agent, and check the machine's rules in every reachable state.",
    rules: ['no event crashes the machine'],
    tests: [
      'test/scenarios/durable-hostile.test.ts › a process that dies after any record › a replay up to each record equals the live machine at that record, byte for byte',
      'test/graph/paths.test.ts › the paths take every transition that the chart declares',
      'test/graph/paths.test.ts › the live agent takes the same path, %s',
      'test/graph/invariants.test.ts › in every reachable state: %s',
    ],
  },
}

export interface Claim {
  name: string
  text: string
  rules: readonly string[]
  tests: readonly string[]
}

export const readClaims = (): Claim[] => Object.entries(claims).map(([name, claim]) => ({ name, ...claim }))

/** The guarantees in the README. */
export function readNames(): string[] {
  const [, section = ''] = /^## What it guarantees$([^]*?)^## /m.exec(read('README.md')) ?? []
  return [...section.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, name = '']) => name)
}

/** Finds a test by `file › describe › name`. */
function hasTest(test: string): boolean {
  const [file = '', ...path] = test.split(' › ')
  return testsOf(file).some(({ name, isSkipped }) => name === path.join(' › ') && !isSkipped)
}

export function renderClaim({ name, text, rules, tests }: Claim): string {
  if (rules.length === 0 || tests.length === 0)
    throw new Error(`The claim "${name}" has no ${rules.length === 0 ? 'rules' : 'tests'}`)
  const gone = [
    ...rules.filter((rule) => !agentInvariants.some((known) => known.name === rule)),
    ...tests.filter((test) => !hasTest(test)),
  ]
  if (gone.length > 0) throw new Error(`The proofs of "${name}" do not exist: ${gone.join(', ')}`)
  return [
    `### ${name}`,
    `${text.charAt(0).toUpperCase()}${text.slice(1)}`,
    [
      'Rules of the machine, checked in every reachable configuration:',
      ...rules.map((rule) => `- ${rule}`),
    ].join('\n'),
    ['Tests:', ...tests.map((test) => `- \`${test}\``)].join('\n'),
  ].join('\n\n')
}

/** The page content below the count line. */
export async function renderGuarantees(): Promise<string> {
  const counts = (await countProofs()).map(
    ({ count, what, command }) =>
      `| ${count.toLocaleString('en')} | ${what} | \`npm run suite -- ${command}\` |`,
  )
  return [
    ['| Count | Evidence | Command |', '| ---: | --- | --- |', ...counts].join('\n'),
    ...readClaims().map(renderClaim),
  ].join('\n\n')
}

/** The date and the commit of a count. */
export function renderStamp(): string {
  const commit = execFileSync('git', ['log', '-1', '--format=%h'], { cwd: root, encoding: 'utf8' }).trim()
  return `Counted on ${new Date().toISOString().slice(0, 10)}, after commit ${commit}.`
}
