import { SimulatedClock } from 'xstate'
import { z } from 'zod'
import { defineTool } from '../../../src/core/tools/define-tool.js'
import { prepareCalls } from '../../../src/core/tools/prepare-calls.js'
import { createToolSet } from '../../../src/core/tools/tool-set.js'

const common = { description: 'Does.', input: z.object({ n: z.number() }), execute: () => 'done' }
const tools = createToolSet([
  defineTool({ ...common, name: 'free' }),
  defineTool({ ...common, name: 'guarded', needsApproval: true }),
  defineTool({ ...common, name: 'small', needsApproval: ({ n }) => n > 10 }),
  defineTool({ ...common, name: 'slow', needsApproval: ({ n }) => Promise.resolve(n > 10) }),
  defineTool({ ...common, name: 'owned', needsApproval: (_, { context }) => context !== 'owner' }),
  defineTool({
    ...common,
    name: 'throwing',
    needsApproval: () => {
      throw new Error('boom')
    },
  }),
  defineTool({ ...common, name: 'rejecting', needsApproval: () => Promise.reject(new Error('boom')) }),
  defineTool({ ...common, name: 'forgetful', needsApproval: () => undefined as unknown as boolean }),
  defineTool({ name: 'ask', description: 'Asks.', input: common.input, client: true }),
])

const clock = new SimulatedClock()

async function needs(name: string, args: string, context?: unknown): Promise<string | undefined> {
  const calls = [{ id: 'c1', type: 'function' as const, function: { name, arguments: args } }]
  return (await prepareCalls(calls, tools, { context, defaultTimeoutMs: 0, clock }))[0]?.needs
}

test.each([
  ['free', '{"n":1}', 'nobody'],
  ['guarded', '{"n":1}', 'approval'],
  ['small', '{"n":1}', 'nobody'],
  ['small', '{"n":11}', 'approval'],
  ['slow', '{"n":1}', 'nobody'],
  ['slow', '{"n":11}', 'approval'],
  ['ask', '{"n":1}', 'client'],
])('%s with %s needs %s', async (name, args, who) => {
  expect(await needs(name, args)).toBe(who)
})

test.each(['throwing', 'rejecting', 'forgetful'])(
  'A predicate that is %s requires approval',
  async (name) => {
    expect(await needs(name, '{"n":1}')).toBe('approval')
  },
)

test.each(['free', 'guarded', 'throwing', 'ask', 'unknown'])(
  'Unusable arguments of %s are not shown to a person',
  async (name) => {
    expect(await needs(name, '{"n":')).toBe('nobody')
    expect(await needs(name, '{"n":"1"}')).toBe('nobody')
    expect(await needs(name, '[]')).toBe('nobody')
  },
)

test('A predicate receives the app’s context', async () => {
  expect(await needs('owned', '{"n":1}', 'owner')).toBe('nobody')
  expect(await needs('owned', '{"n":1}', 'guest')).toBe('approval')
})

test('Each call has its answer, in call order', async () => {
  const calls = ['slow', 'ask', 'free'].map((name, index) => ({
    id: `c${index}`,
    type: 'function' as const,
    function: { name, arguments: '{"n":20}' },
  }))
  expect(await prepareCalls(calls, tools, { context: undefined, defaultTimeoutMs: 0, clock })).toEqual([
    { id: 'c0', needs: 'approval' },
    { id: 'c1', needs: 'client' },
    { id: 'c2', needs: 'nobody' },
  ])
})
