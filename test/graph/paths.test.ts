import { agentMachine } from '../../machines/agent.machine.js'
import { agentSpace, generatePaths, replay } from '../../src/testing/index.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { addUsage, noUsage } from '../../machines/agent/usage.js'
import { agentPaths } from '../support/agent-paths.js'
import { Recorded, tokensOf } from '../support/spans.js'
import { faults } from '../support/record-faults.js'
import { toStored, restoreProblem } from '../support/restore-plain.js'
import { createIdleAgent, Difference, SideBySide } from '../core/interpreter/side-by-side.js'
import { AgentHarness } from '../support/agent-harness/agent-harness.js'
import { exploreWhole } from './whole-graph.js'

/**
 * `npm run suite -- graph` takes every path from every input. `npm test` takes the paths of two inputs that together cover every
 * transition.
 */
const isWhole = process.env.STATEWRIGHT_GRAPH === 'all'
const space = agentSpace(isWhole ? {} : { only: ['with every shield', 'interactive'] })
type PathState = (typeof paths)[number]['steps'][number]['state']
const wholeKey = ({ value, context }: PathState) => JSON.stringify([value, context])
/** The state, and the progress of its calls. */
const sampleKey = ({ value, context }: PathState) => {
  const { calls } = context as AgentContext
  return JSON.stringify([value, calls.map(({ started, result }) => [started, result !== undefined])])
}

const { paths, coverage } = isWhole ? exploreWhole().paths : generatePaths(agentMachine, space)

/** Assertions on all paths together. */
const wholeTest = isWhole ? test : test.skip

wholeTest('the paths take every transition that the chart declares', () => {
  const missed = coverage.transitions.filter(({ count }) => count === 0)
  expect(missed.map(({ id, uncovered }) => `${id}: ${uncovered?.message}`)).toEqual([])
  expect(coverage.states.filter(({ reached }) => !reached)).toEqual([])
})

wholeTest('the paths take every pair of transitions that can follow each other', () => {
  expect(coverage.pairs?.filter(({ count }) => count === 0)).toEqual([])
  expect(coverage.pairs?.length).toBeGreaterThan(coverage.transitions.length)
})

wholeTest('the paths that other suites share are the same', () => {
  const shown = ({ input, name, steps }: (typeof paths)[number]) => [
    input,
    name,
    ...steps.map(({ event, label, state: { value }, transitions }) => [event, label, value, transitions]),
  ]
  expect(agentPaths().map(shown)).toEqual(paths.map(shown))
})

test('the tables take every path like XState, with the same actions and events', () => {
  const pair = new SideBySide(createIdleAgent())
  for (const { input, name, steps } of paths) {
    let snapshot = pair.start(space.inputs[input as string])
    for (const { event } of steps.slice(1)) {
      const next = pair.take(snapshot, event)
      if (next instanceof Difference) throw new Error(`${input}: ${name}. ${next.toString()}`)
      snapshot = next
    }
    expect(snapshot.value).toEqual(steps.at(-1)?.state.value)
  }
  expect(pair.macrosteps).toBeGreaterThan(paths.length)
})

/** Inputs for the rules. They take no transition that another input does not take. */
const takesNothingOfItsOwn = new Set([
  'with an output schema',
  'with capped calls',
  'with tools that ask',
  'with handoffs and result shields',
  'with sleep and a spent budget',
  'with prepared steps, input shields and a window',
  'with policies',
])

test('the paths start with every input', () => {
  const isOfItsOwn = (input: string): boolean => !takesNothingOfItsOwn.has(input)
  const begun = new Set(paths.map(({ input }) => input).filter(isOfItsOwn))
  expect(begun).toEqual(new Set(Object.keys(space.inputs).filter(isOfItsOwn)))
})

wholeTest(
  'from every state a final one can be reached, even if nobody cancels and no deadline passes',
  () => {
    const { patient } = exploreWhole().properties
    expect(patient.message).toMatch(/^patient: holds in all \d+ states$/)
    expect(patient.holds).toBe(true)
  },
)

test('each start and each event on the paths matches the schema of records', () => {
  const records = paths.flatMap(({ steps }) =>
    steps.map(({ event }, i) => {
      const at = { seq: i + 1, at: 0 }
      if (i > 0) return { ...at, type: 'event', event }
      const {
        messages: _m,
        usage: _u,
        guardrails: _g,
        warnedOfBudget: _w,
        fit: _f,
        ...input
      } = event['input'] as object & Record<string, unknown>
      return { ...at, type: 'start', input }
    }),
  )
  expect(
    records.flatMap((record) =>
      faults(record)
        .slice(-1)
        .map((fault) => [fault, record]),
    ),
  ).toEqual([])
})

/** Every active state of the paths, once. The sample keeps one of the states that differ only in numbers. */
function statesOf(key: (state: PathState) => string): PathState[] {
  const states = paths.flatMap(({ steps }) => steps.map(({ state }) => state))
  return [
    ...new Map(
      states.filter(({ status }) => status === 'active').map((state) => [key(state), state]),
    ).values(),
  ]
}

test('a snapshot of any state on the paths reaches an end after plain XState restores it', async () => {
  const states = statesOf(isWhole ? wholeKey : sampleKey)
  expect(states.length).toBeGreaterThan(20)
  const problems: unknown[] = []
  for (const state of states) {
    const snapshot = toStored(state)
    const problem = await restoreProblem(snapshot)
    if (problem !== null) problems.push([state.value, problem])
  }
  expect(problems).toEqual([])
}, 600_000)

const sent: string[] = []

test.each(paths.map((path, i) => [`${i + 1}. with ${path.input}: ${path.name}`, path] as const))(
  'the live agent takes the same path, %s',
  async (_, path) => {
    const recorded = new Recorded()
    let used = noUsage
    const harness = new AgentHarness(
      path.steps,
      (event) => {
        // The path defines the usage of sub-agents and summaries, because no request is made.
        const isOwn =
          event.type === 'usage' && event.callId === undefined && !event.stepId.endsWith('.summary')
        if (isOwn) used = addUsage(used, event.step)
      },
      recorded.otel(),
    )
    expect(await replay(path, harness)).toEqual({ ok: true, steps: path.steps.length })
    sent.push(...harness.sent)
    // A leaving process drops requests and estimates their usage. A path continues and drops nothing.
    const isLeft = path.steps.some(({ event }) => event.type === 'RELEASED')
    if (!isLeft) expect(recorded.tokens).toEqual(tokensOf(used))
    expect(recorded.open).toBe(0)
  },
)

wholeTest('nearly everything was caused in its world: few events were handed to the machine', () => {
  expect([...new Set(sent)].sort()).toEqual([
    'BATCH_DONE',
    'CHILD_USAGE',
    'CHILD_WAITING',
    'GRANT_ENDED',
    'HANDED_OFF',
    'HANDLE_SAVED',
    'SKILL_CHANGED',
    'STORE_FAILED',
    'TOOLS_LOADED',
    'TOOL_RESULT',
    'xstate.done.actor.tools',
    'xstate.error.actor.backOff',
    'xstate.error.actor.tools',
  ])
})
