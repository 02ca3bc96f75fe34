import { readFileSync } from 'node:fs'
import {
  type Actor,
  type AnyActor,
  type AnyEventObject,
  type AnyStateMachine,
  createActor,
  SimulatedClock,
} from 'xstate'
import { z } from 'zod'
import { createAgent, defineTool, openaiChat } from '../../src/index.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import {
  canReach,
  checkInvariants,
  checkProperties,
  isFinal,
  leadsTo,
  type Moment,
  generatePaths,
  type Invariant,
  createMachineHarness,
  replay,
} from '../../src/testing/index.js'
// @ts-expect-error -- the file has no types
import * as example from '../../examples/sign-off.machine.mjs'

const {
  default: machine,
  inputs,
  alphabet,
  invariants,
} = example as {
  default: AnyStateMachine
  inputs: Record<string, unknown>
  alphabet: Record<string, AnyEventObject>
  invariants: Invariant[]
}
const space = { inputs: inputs as never, alphabet }

/** The first mistake of the guide: one signature is enough. */
const hasty = machine.provide({ guards: { isLastSignature: () => true } })

/** The second one: anybody's second signature counts. */
const careless = machine.provide({
  guards: {
    isLastSignature: ({ context }: { context: { signedBy: string[] } }) => context.signedBy.length === 1,
  },
})

const guide = readFileSync('docs/test-your-own-agent.md', 'utf8')

test('the paths take every transition of the machine', () => {
  const { coverage } = generatePaths(machine, space)
  expect(coverage.transitions.filter(({ count }) => count === 0)).toEqual([])
})

test('nothing is released without two people', () => {
  expect(checkInvariants(machine, invariants, space).violations.map(String)).toEqual([])
})

test('the paths pass on the machine that generated them', async () => {
  for (const path of generatePaths(machine, space).paths)
    expect(await replay(path, createMachineHarness(machine))).toMatchObject({ ok: true })
})

test('the first mistake of the guide fails a path, with the message that the guide shows', async () => {
  const { paths } = generatePaths(machine, space)
  const results = await Promise.all(paths.map((path) => replay(path, createMachineHarness(hasty))))
  const failed = results.find(({ ok }) => !ok)
  expect(guide).toContain(failed && !failed.ok ? failed.message : 'No path failed.')
})

test('the second mistake breaks the rule, with the path that the guide shows', () => {
  const [violation] = checkInvariants(careless, invariants, space).violations
  expect(guide).toContain(String(violation))
})

test('the guide shows the current example', () => {
  const example = readFileSync('examples/sign-off.machine.mjs', 'utf8')
  const shown = [...guide.matchAll(/```js\n(.*?)```/gs)].map(([, code = '']) => code.trim())
  expect(shown.length).toBeGreaterThan(2)
  for (const code of shown.filter((text) => !text.startsWith('// ')))
    for (const line of code.split('\n')) expect(example).toContain(line.trim())
})

describe('with a live agent inside', () => {
  const deployed: string[] = []

  async function start(): Promise<{
    actor: Actor<AnyStateMachine>
    clock: SimulatedClock
    close: () => Promise<void>
  }> {
    deployed.length = 0
    const rehearsal = await startRehearsal({
      scenario: {
        turns: [{ toolCalls: [{ name: 'deploy', arguments: { version: 7 } }] }, { text: 'It is done.' }],
      },
      strict: true,
    })
    const agent = createAgent({
      model: openaiChat({ model: 'm', baseURL: rehearsal.url, apiKey: 'none' }),
      tools: [
        defineTool({
          name: 'deploy',
          description: 'Deploys a version.',
          input: z.object({ version: z.number() }),
          needsApproval: true,
          execute: ({ version }) => deployed.push(`version ${version}`) && 'Deployed.',
        }),
      ],
    })
    const clock = new SimulatedClock()
    const actor = createActor(machine.provide({ actors: { agent: agent.machine as never } }), {
      input: { task: 'Deploy version 7.' },
      clock,
    })
    actor.start()
    await until(actor, () => actor.getSnapshot().matches({ running: 'awaitingSignatures' }))
    return { actor, clock, close: () => rehearsal.close() }
  }

  test('two people release a call, and the agent continues', async () => {
    const { actor, close } = await start()
    actor.send({ type: 'SIGN', by: 'Ada' })
    actor.send({ type: 'SIGN', by: 'Ada' })
    expect(actor.getSnapshot().value).toEqual({ running: 'awaitingSignatures' })
    expect(deployed).toEqual([])
    actor.send({ type: 'SIGN', by: 'Ben' })
    await until(actor, () => actor.getSnapshot().status === 'done')
    expect(actor.getSnapshot().value).toBe('finished')
    expect(deployed).toEqual(['version 7'])
    await close()
  })

  test('after a day without signatures the call is refused', async () => {
    const { actor, clock, close } = await start()
    actor.send({ type: 'SIGN', by: 'Ada' })
    clock.increment(86_400_000)
    await until(actor, () => actor.getSnapshot().status === 'done')
    expect(actor.getSnapshot().value).toBe('finished')
    expect(deployed).toEqual([])
    await close()
  })
})

function until(actor: AnyActor, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (holds()) resolve()
    }
    actor.subscribe({ next: look, complete: look })
    look()
  })
}

test('a machine with a live agent is checked over time, without starting the agent', () => {
  const agent = createAgent({
    model: openaiChat({ model: 'none', baseURL: 'http://127.0.0.1:1/v1', apiKey: 'none' }),
    tools: [],
  })
  const withAgent = machine.provide({ actors: { agent: agent.machine } })
  const isDecided = ({ snapshot }: Moment) => !snapshot.matches({ running: 'awaitingSignatures' })
  const properties = {
    'who waits for signatures waits no longer than a day': leadsTo('running.awaitingSignatures', isDecided, {
      fair: ['xstate.after.*'],
    }),
    'two people sign, if people sign': leadsTo('running.awaitingSignatures', isDecided, { fair: ['SIGN'] }),
    'there is a way to an end': canReach(isFinal),
  }
  const reports = checkProperties(withAgent, properties, space)
  expect(Object.values(reports).map(({ holds }) => holds)).toEqual([true, false, true])
  // An agent that keeps asking for something else wears the signers out.
  expect(reports['two people sign, if people sign'].counterexample?.loop?.map(({ label }) => label)).toEqual(
    expect.arrayContaining(['the agent wants to delete', 'Ada signs']),
  )
})
