import { jest } from '@jest/globals'
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  createEmptyActor,
  createMachine,
  initialTransition,
  SimulatedClock,
  waitFor,
} from 'xstate'
import { createTableTransition } from '../../../src/core/interpreter/table-transition.js'
import { findChangedInternal, type TransitionScope } from '../../../src/core/interpreter/xstate-internals.js'
import {
  ConfigError,
  createAgent,
  defineTool,
  memoryJournal,
  memoryStore,
  type ModelProvider,
} from '../../../src/index.js'
import { createIdleAgent } from './side-by-side.js'
import { inputs } from './random-walk.js'

const numbers = {
  type: 'object',
  properties: { n: { type: 'number' } },
  required: ['n'],
  additionalProperties: false,
} as const
const plain = inputs['plain']

describe('a chart with features that the tables do not support', () => {
  const parallel = createMachine({
    id: 'two',
    type: 'parallel',
    states: {
      left: { initial: 'off', states: { off: { on: { GO: 'on' } }, on: {} } },
      right: { initial: 'off', states: { off: { on: { GO: 'on' } }, on: {} } },
    },
  })

  function play(id: string): { warnings: unknown[]; value: unknown } {
    const machine = parallel.provide({}) as unknown as AnyStateMachine
    Object.assign(machine, { id })
    machine.transition = createTableTransition(machine) as unknown as AnyStateMachine['transition']
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const actor = createActor(machine).start()
    actor.send({ type: 'GO' })
    actor.send({ type: 'GO' })
    const warnings = warn.mock.calls.map(([message]) => message)
    warn.mockRestore()
    return { warnings, value: (actor.getSnapshot() as AnyMachineSnapshot).value }
  }

  it('is run by XState, and the developer is warned once which feature it is', () => {
    const first = play('two')
    expect(first.value).toEqual({ left: 'on', right: 'on' })
    expect(first.warnings).toEqual(["XState itself runs the machine 'two': state 'two' is parallel."])
  })

  it('causes no second warning', () => {
    expect(play('two').warnings).toEqual([])
  })

  it('causes no warning in production', () => {
    const { NODE_ENV } = process.env
    process.env.NODE_ENV = 'production'
    const { warnings, value } = play('three')
    process.env.NODE_ENV = NODE_ENV
    expect([warnings, value]).toEqual([[], { left: 'on', right: 'on' }])
  })
})

describe('the XState internals that the tables rely on', () => {
  const machine = createIdleAgent()
  const snapshot = initialTransition(machine, plain)[0] as AnyMachineSnapshot
  const self = createEmptyActor()
  const scope = {
    self,
    system: self.system,
    defer: () => undefined,
    actionExecutor: () => undefined,
  } as unknown as TransitionScope

  it('exist in the installed version', () => {
    const changed = findChangedInternal(machine, snapshot, scope)
    if (changed !== null)
      throw new Error(
        `${changed}. Mend src/core/interpreter for it; until then XState's own interpreter runs the agents.`,
      )
  })

  const root = (patch: object): AnyStateMachine => {
    const { entry, exit, order } = machine.root
    const changed = { entry, exit, transitions: new Map(), order, invoke: [], ...patch }
    return { root: changed, getTransitionData: () => [] } as never
  }
  const rooted = (patch: object) => {
    const changed = root(patch)
    return [changed, { ...snapshot, _nodes: [changed.root] }, scope] as const
  }
  const own = machine.root.transitions

  it.each([
    ['a snapshot has the members', [machine, { ...snapshot, region: 1 }, scope]],
    ['snapshot._nodes lists the active states', [machine, { ...snapshot, _nodes: [] }, scope]],
    ['a state has an `entry` array', rooted({ entry: undefined })],
    ['a state has an `exit` array', rooted({ exit: {} })],
    ['a state has an `invoke` array', rooted({ invoke: new Map() })],
    ['a state has a `transitions` map', rooted({ transitions: { values: () => [] } })],
    ['a state has a numeric `order`', rooted({ order: undefined })],
    ['a transition has `source`', rooted({ transitions: own })],
    ['a machine has getTransitionData', [{ root: machine.root }, snapshot, scope]],
    ['scope.actionExecutor', [machine, snapshot, { ...scope, actionExecutor: undefined }]],
    ['scope.defer', [machine, snapshot, { ...scope, defer: undefined }]],
    ['scope.system._sendInspectionEvent', [machine, snapshot, { ...scope, system: {} }]],
  ])('are named if a version changes them: %s', (what, input) => {
    const found = findChangedInternal(...(input as Parameters<typeof findChangedInternal>))
    expect(found).toMatch(/^this version of XState has different internals\. This is no longer true: /)
    expect(found).toContain(what)
  })
})

describe('the option interpreter', () => {
  const model: ModelProvider = {
    provider: 'none',
    model: 'm',
    request: async () => ({
      text: 'Done.',
      reasoning: '',
      refusal: null,
      toolCalls: [],
      finishReason: 'stop',
      complete: true,
      model: 'm',
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 },
    }),
  }

  /** XState creates a new state value each time. The tables reuse one. */
  async function sharesValues(interpreter?: 'tables' | 'xstate'): Promise<boolean> {
    const agent = createAgent({ model, interactive: true, ...(interpreter && { interpreter }) })
    const values = await Promise.all(
      ['One.', 'Two.'].map(async (input) => {
        const actor = createActor(agent.machine, { input }).start()
        const { value } = await waitFor(actor, (snapshot) => snapshot.matches('WAITING_FOR_INPUT'))
        actor.stop()
        return value
      }),
    )
    expect(values[0]).toEqual({ WAITING_FOR_INPUT: 'message' })
    return values[0] === values[1]
  }

  it('defaults to tables, and accepts xstate', async () => {
    expect([await sharesValues(), await sharesValues('tables'), await sharesValues('xstate')]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('does not change the records of a run', async () => {
    const keep = async (interpreter: 'tables' | 'xstate'): Promise<string> => {
      const clock = new SimulatedClock()
      const journal = memoryJournal()
      const tool = { id: 'a', type: 'function' as const, function: { name: 'add', arguments: '{"n":1}' } }
      const calling: ModelProvider = {
        ...model,
        request: async (request, callbacks) => {
          const answer = await model.request(request, callbacks)
          return request.messages.length > 1 ? answer : { ...answer, text: '', toolCalls: [tool] }
        },
      }
      const tools = [defineTool({ name: 'add', description: 'Adds.', input: numbers, execute: () => '3' })]
      const agent = createAgent({ model: calling, tools, clock, interpreter, prices: null })
      const run = agent.run('Go.', { journal })
      const { state, output } = await run.result
      expect([state, output, journal.entries.length]).toEqual(['COMPLETED', 'Done.', 4])
      return JSON.stringify(journal.entries).replaceAll(run.id, 'RUN').replaceAll(run.sessionId, 'SESSION')
    }
    expect(await keep('tables')).toBe(await keep('xstate'))
  })

  it('is not part of a session: the other interpreter continues it', async () => {
    const store = memoryStore()
    const first = createAgent({ model, store, interactive: true, interpreter: 'tables' })
    await first.run('Go.', { session: 'ann' }).result
    const other = createAgent({ model, store, interactive: true, interpreter: 'xstate' })
    expect(other.config).not.toHaveProperty('interpreter')
    const resumed = await other.resume('ann')
    resumed.reply('And now?')
    const { state } = await resumed.result
    const { messages } = await other.readSession('ann')
    expect([state, messages.map(({ role }) => role)]).toEqual([
      'WAITING_FOR_INPUT',
      ['user', 'assistant', 'user', 'assistant'],
    ])
    expect(JSON.stringify(store.read('ann'))).not.toContain('"interpreter"')
  })

  it('is refused if it is neither, and its mistyped name is recognized', () => {
    const refused = (options: object): string => {
      try {
        createAgent({ model, ...options })
        return ''
      } catch (error) {
        return error instanceof ConfigError ? `${error.subject}: ${error.message}` : String(error)
      }
    }
    expect(refused({ interpreter: 'fast' })).toBe("interpreter: interpreter must be 'tables' or 'xstate'.")
    expect(refused({ interpretor: 'xstate' })).toContain(
      'interpretor is not a known key. Did you mean interpreter?',
    )
  })
})
