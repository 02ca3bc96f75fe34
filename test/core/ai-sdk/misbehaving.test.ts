import { ReadableStream } from 'node:stream/web'
import { describeError } from '../../../src/core/base/errors.js'
import { type AiSdkModel, languageModel } from '../../../src/ai-sdk/index.js'
import { askOnce, sdkModel } from './sdk-model.js'

const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: {} }
const call = (toolCallId: string, toolName: string, input: string) => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input,
})

it.each(['', 'call_0'])('calls that share the id %j all run', async (id) => {
  const streamed = [
    { type: 'tool-input-start', id, toolName: 'look' },
    { type: 'tool-input-delta', id, delta: '{"at":1}' },
    { type: 'tool-input-end', id },
  ]
  const parts = [
    ...streamed,
    call(id, 'look', '{"at":1}'),
    call(id, 'look', '{"at":2}'),
    call(id, 'eat', '{}'),
  ]
  const { response } = await askOnce(languageModel(sdkModel(parts)))
  expect(response.toolCalls.map((one) => one.function)).toEqual([
    { name: 'look', arguments: '{"at":1}' },
    { name: 'look', arguments: '{"at":2}' },
    { name: 'eat', arguments: '{}' },
  ])
})

it('a call that is sent twice runs once', async () => {
  const parts = [call('a', 'look', '{}'), call('a', 'look', '{}')]
  const { response } = await askOnce(languageModel(sdkModel(parts)))
  expect(response.toolCalls).toHaveLength(1)
})

it('content after the end is ignored, and no one waits for the stream to close', async () => {
  const usage = { inputTokens: { total: 5 }, outputTokens: { total: 2 } }
  const parts = [
    { type: 'text-delta', id: '0', delta: 'So.' },
    { ...finish, usage },
    { type: 'text-delta', id: '0', delta: ' And more.' },
    { type: 'error', error: new Error('late') },
    { ...finish, finishReason: { unified: 'length', raw: 'length' } },
  ]
  let close = () => undefined as void
  const endless = new ReadableStream({
    start(controller) {
      close = () => controller.close()
      for (const part of parts) controller.enqueue(part)
    },
  })
  const model = { ...sdkModel([]), doStream: () => Promise.resolve({ stream: endless }) }
  const { response, deltas } = await askOnce(languageModel(model))
  expect(deltas).toEqual([['So.', '']])
  expect(response).toMatchObject({ text: 'So.', finishReason: 'stop', complete: true })
  expect(response.usage).toMatchObject({ inputTokens: 5, outputTokens: 2 })
  close()
})

it('a wrapper of the model sees its stream end', async () => {
  let flushed = () => undefined as void
  const hasEnded = new Promise<void>((resolve) => (flushed = resolve))
  const model = sdkModel([{ type: 'text-delta', id: '0', delta: 'So.' }, finish])
  const wrapped: AiSdkModel = {
    ...model,
    doStream: async (options) => {
      const { stream } = (await model.doStream(options)) as { stream: globalThis.ReadableStream }
      return { stream: stream.pipeThrough(new TransformStream({ flush: () => flushed() })) }
    },
  }
  await askOnce(languageModel(wrapped))
  await hasEnded
})

it.each([null, undefined, {}, { stream: [] }])(
  'a package that returns %j as a stream is named',
  async (input) => {
    const model = { ...sdkModel([]), doStream: () => Promise.resolve(input) }
    await expect(askOnce(languageModel(model))).rejects.toMatchObject({
      failure: {
        kind: 'fatal',
        code: 'invalid_response',
        message: expect.stringContaining('m-1 returned no stream'),
      },
    })
  },
)

it.each([
  ['anthropic.messages', { anthropic: { cacheCreationInputTokens: 100 } }, 15],
  ['amazon-bedrock', { bedrock: { usage: { cacheWriteInputTokens: 100 } } }, 15],
  ['amazon-bedrock', { bedrock: { usage: { cacheWriteInputTokens: 100 } } }, 205],
])(
  'v2 of %s: cached reads and writes count as input once (%j, total %d)',
  async (provider, metadata, totalTokens) => {
    const usage = { inputTokens: 10, outputTokens: 5, totalTokens, cachedInputTokens: 90 }
    const end = { type: 'finish', finishReason: 'stop', usage, providerMetadata: metadata }
    const { response } = await askOnce(languageModel(sdkModel([end], { version: 'v2', provider })))
    expect(response.usage).toEqual({
      inputTokens: 200,
      outputTokens: 5,
      totalTokens: 205,
      cachedInputTokens: 90,
      cacheWriteTokens: 100,
      reasoningTokens: 0,
    })
  },
)

it('a header that an error repeats is not shown', async () => {
  const headers = { 'x-tenant': 'heron-tenant-4711', 'anthropic-beta': 'context-1m-2025' }
  const text = Object.values(headers).join(' and ')
  const refused = Object.assign(new Error(`Refused: ${text}`), {
    name: 'AI_APICallError',
    statusCode: 400,
    responseBody: JSON.stringify({ error: { message: `What is ${text}?`, code: 'bad_header' } }),
  })
  const model = { ...sdkModel([]), doStream: () => Promise.reject(refused) }
  const error: unknown = await askOnce(languageModel(model, { headers })).catch((caught: unknown) => caught)
  expect(error).toMatchObject({
    failure: {
      code: 'bad_header',
      message: expect.stringContaining('What is [redacted] and context-1m-2025?'),
    },
  })
  expect(describeError(error)).not.toContain('heron-tenant')
})
