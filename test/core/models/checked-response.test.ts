import { normalizeResponse } from '../../../src/core/models/normalize-response.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { createAgent, defineTool } from '../../../src/index.js'
import { call, ManualModel, settled } from '../../support/manual-model.js'

const sloppy = (response: object): ModelResponse => normalizeResponse(response as ModelResponse)

test('call ids are unique within an answer, and arguments are JSON text', () => {
  const { toolCalls } = sloppy({
    toolCalls: [
      { id: 'x', function: { name: 'pay', arguments: { to: 'a' } } },
      { id: 'x', function: { name: 'pay', arguments: '{"to":"b"}' } },
      { function: { name: 'pay' } },
    ],
  })
  expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(3)
  expect(toolCalls.map((one) => one.function.arguments)).toEqual(['{"to":"a"}', '{"to":"b"}', '{}'])
})

test('usage is an integer and finite, or null, which is estimated', () => {
  expect(sloppy({}).usage).toBeNull()
  expect(sloppy({ usage: { inputTokens: 3, outputTokens: 4 } }).usage).toEqual({
    inputTokens: 3,
    outputTokens: 4,
    totalTokens: 7,
    cachedInputTokens: 0,
    reasoningTokens: 0,
  })
  expect(sloppy({ usage: { inputTokens: '3', outputTokens: Number.NaN } }).usage).toBeNull()
  expect(sloppy({ usage: { inputTokens: 0, outputTokens: 0 } }).usage?.totalTokens).toBe(0)
})

test('provider data is plain JSON, without values that cannot be sent', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const deep: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
  const { toolCalls, reasoningDetails } = sloppy({
    reasoningDetails: [{ a: 1 }, 1n, cycle, deep, () => 1],
    toolCalls: [
      { function: { name: 'f' }, extra_content: 1n },
      { function: { name: 'f' }, extra_content: { s: 1 } },
    ],
  })
  expect(reasoningDetails).toEqual([{ a: 1 }])
  expect(toolCalls.map(({ extra_content: extra }) => extra)).toEqual([undefined, { s: 1 }])
})

test('a missing answer is an empty one', () => {
  expect(normalizeResponse(undefined as unknown as ModelResponse)).toMatchObject({ text: '', toolCalls: [] })
})

test('one approval lets one call run, even if a provider assigned two calls the same id', async () => {
  const paid: string[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { to: { type: 'string' } } },
    needsApproval: true,
    execute: (input) => {
      paid.push(String((input as { to: unknown }).to))
      return 'Paid.'
    },
  })
  const model = new ManualModel()
  const run = createAgent({ model, tools: [pay] }).run('Pay.')
  await settled()
  model.pending?.answer({
    toolCalls: [call('x', 'pay', { to: 'alice' }), call('x', 'pay', { to: 'mallory' })],
  })
  const { pending = [] } = await run.result
  expect(pending).toHaveLength(2)
  run.approve('x')
  for (const { callId } of pending) if (callId !== 'x') run.reject(callId, 'No.')
  await settled()
  expect(paid).toEqual(['alice'])
  run.cancel()
})
