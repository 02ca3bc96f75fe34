import { sleepUntil, toolContent, ToolError, type ToolExecution, type Run } from '../../src/index.js'
import { Ask, findAsked } from '../../src/core/tools/tool-outcomes.js'
import type { World } from './world.js'

/** A tool at work, as its misbehavior sees it. */
export interface Work {
  world: World
  execution: ToolExecution
  input: unknown
  /** The run that it works for. */
  run: () => Run | undefined
}

type Behaviour = (work: Work) => unknown

const half = '\ud83d'

function cyclic(): unknown {
  const cycle: Record<string, unknown> = { name: 'a' }
  cycle['self'] = cycle
  return cycle
}

function deep(): unknown {
  let value: unknown = 1
  for (let i = 0; i < 20_000; i++) value = { a: value }
  return value
}

function fail(): never {
  throw new Error('barbed')
}

/** A thenable that is not a promise. */
function thenable(
  then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void,
): object {
  // oxlint-disable-next-line unicorn/no-thenable -- intended
  return { then }
}

/** Fails at every touch. */
function barbed(): object {
  return new Proxy(
    {},
    { get: fail, ownKeys: fail, getPrototypeOf: fail, has: fail, getOwnPropertyDescriptor: fail },
  )
}

// oxlint-disable prefer-promise-reject-errors no-throw-literal only-throw-error -- tools throw anything
const throws =
  (what: () => unknown): Behaviour =>
  () => {
    throw what()
  }
const rejects =
  (what: () => unknown): Behaviour =>
  () =>
    Promise.reject(what())
// oxlint-enable prefer-promise-reject-errors no-throw-literal only-throw-error
const returns =
  (what: () => unknown): Behaviour =>
  () =>
    what()

/** Possible misbehaviors of a tool. */
export const tools = {
  works: returns(() => 'done'),
  'works later': async ({ world }) => {
    await world.wait(3_000)
    return { at: world.now() }
  },
  'returns nothing': returns(() => undefined),
  'returns blanks': returns(() => ' \n'),
  'returns half a pair': returns(() => ({ [half]: half, list: [`a${half}`] })),
  'returns a BigInt': returns(() => ({ big: 10n ** 30n })),
  'returns a cycle': returns(cyclic),
  'returns a function': returns(() => () => 'x'),
  'returns a symbol': returns(() => Symbol('x')),
  'returns depths': returns(deep),
  'returns a huge text': returns(() => 'x'.repeat(200_000)),
  'returns a huge list': returns(() => Array.from({ length: 20_000 }, (_, i) => ({ i }))),
  'returns what fails at every touch': returns(barbed),
  'returns a toJSON that throws': returns(() => ({ toJSON: throws(() => new Error('no JSON')) })),
  'returns bytes, a map, a date, NaN': returns(() => [
    new Uint8Array(9),
    new Map([[{}, 1]]),
    new Date(NaN),
    NaN,
    -0,
  ]),
  'returns a thenable that throws': returns(() => thenable(() => fail())),
  'returns a thenable that settles twice': returns(() =>
    thenable((resolve, reject) => {
      resolve('once')
      reject(new Error('twice'))
      resolve('thrice')
    }),
  ),
  'returns a picture': returns(() =>
    toolContent(
      [
        { type: 'text', text: 'Here.' },
        { type: 'image', image: new Uint8Array([137, 80, 78, 71]), mediaType: 'image/png' },
      ],
      { mediaOptional: true },
    ),
  ),
  'keeps a handle and asks a person': async ({ world, execution }) => {
    const { handle, keepHandle } = execution
    const question = findAsked(execution)
    if (question) return { handle, answers: question.answers, memo: question.memo }
    if (handle === undefined) await keepHandle?.({ job: 1 })
    await world.wait(3_000)
    const schema = { type: 'object', properties: { seat: { type: 'string', title: 'Seat' } } } as const
    return new Ask([{ server: 'air', message: 'Which seat?', mode: 'form', schema }], { round: 1 })
  },
  'lets the run sleep': ({ world }) => sleepUntil(world.now() + 3_600_000),
  'throws an error': throws(() => new Error(`It broke. ${half}`)),
  'throws nothing': throws(() => undefined),
  'throws null': rejects(() => null),
  'throws a text': throws(() => 'just a text'),
  'throws a symbol': rejects(() => Symbol('s')),
  'throws what fails at every touch': rejects(barbed),
  'throws a cycle': rejects(cyclic),
  'throws an error without end': rejects(() => new Error('e'.repeat(200_000))),
  'throws an error whose message throws': throws(() =>
    Object.defineProperty(new Error(), 'message', { get: fail }),
  ),
  'throws a transient error': throws(() => new ToolError('transient', 'Try again.')),
  'is denied': throws(() => new ToolError('policy_denied', 'Not allowed.')),
  'throws an AbortError of its own': rejects(() => new DOMException('Aborted', 'AbortError')),
  hangs: ({ world, execution }) => world.hang(execution.signal),
  'hangs and is deaf': ({ world }) => world.hang(),
  'rejects long after it was stopped': async ({ world, execution }) => {
    await Promise.race([world.wait(700_000), world.hang(execution.signal).catch(() => undefined)])
    await world.wait(5_000)
    throw new Error('Too late.')
  },
  'tells progress after its end': ({ world, execution }) => {
    world.setTimeout(() => execution.progress('late'), 10)
    void world.wait(20).then(() => execution.progress(cyclic()))
    return 'done'
  },
  'tells any progress': ({ execution }) => {
    for (const value of [1n, cyclic(), barbed(), undefined, () => 1, half, deep()]) execution.progress(value)
    for (let i = 0; i < 200; i++) execution.progress(i)
    return 'done'
  },
  'changes its input': ({ input }) => {
    for (const key of Object.keys(input as object)) delete (input as Record<string, unknown>)[key]
    return Object.assign(input as object, { changed: true })
  },
  'listens for its abort': ({ world, execution }) => {
    execution.signal.addEventListener('abort', () => {
      world.moves += 1
    })
    return world.hang(execution.signal)
  },
  'cancels its run': ({ run }) => run()?.cancel('by a tool'),
  'pauses its run': ({ run }) => run()?.pause(),
  'steers its run': ({ run }) => run()?.steer(`Mind ${half}.`),
} satisfies Record<string, Behaviour>

export type ToolName = keyof typeof tools

export const toolNames = Object.keys(tools) as ToolName[]
