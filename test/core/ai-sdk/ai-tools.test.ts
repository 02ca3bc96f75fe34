import { jsonSchema, tool, zodSchema } from 'ai'
import * as z from 'zod'
import * as z3 from 'zod/v3'
import { type AiSdkTool, aiTools } from '../../../src/ai-sdk/index.js'
import { createAgent } from '../../../src/index.js'
import { call, ManualModel, settled } from '../../support/manual-model.js'

const city = z.object({ city: z.string(), days: z.number().default(1) })

async function run(tools: Record<string, AiSdkTool>, args: object, context?: unknown) {
  const model = new ManualModel()
  const agent = createAgent({ model, tools: aiTools(tools) })
  const run = agent.run('Go.', { context })
  const events: { type: string }[] = []
  run.events$.subscribe((event) => void events.push(event))
  await settled()
  const [name = ''] = Object.keys(tools)
  model.pending?.answer({ toolCalls: [call('c1', name, args)], finishReason: 'tool_calls' })
  for (let i = 0; i < 200 && model.attempts.length < 2 && run.state === 'RUNNING'; i += 1) await settled()
  for (let i = 0; i < 200 && run.state === 'WAITING_FOR_TOOL'; i += 1) await settled()
  const result = model.pending?.request.messages.at(-1)
  return { run, model, events, result, specs: model.attempts[0]?.request.tools }
}

describe('tools of the AI SDK', () => {
  test.each([
    ['a schema of zod', city],
    ['zodSchema()', zodSchema(city)],
    [
      'a schema of zod 3 in zodSchema()',
      zodSchema(z3.object({ city: z3.string(), days: z3.number().default(1) })),
    ],
    ['a lazy schema', () => zodSchema(city)],
  ])('with %s receive the parsed arguments of the schema', async (_, inputSchema) => {
    const seen: unknown[] = []
    const weather = tool({
      description: 'The weather.',
      inputSchema: inputSchema as typeof city,
      execute: (input, options) => {
        seen.push(input, options)
        return { sky: 'blue' }
      },
    })
    const context = { user: 'ann' }
    const { result, specs } = await run({ weather }, { city: 'Lisbon' }, context)
    expect(specs).toMatchObject([
      {
        name: 'weather',
        description: 'The weather.',
        parameters: { properties: { city: { type: 'string' } } },
      },
    ])
    expect(seen).toEqual([
      { city: 'Lisbon', days: 1 },
      {
        toolCallId: 'c1',
        messages: [],
        abortSignal: expect.any(AbortSignal) as AbortSignal,
        context,
        experimental_context: context,
      },
    ])
    expect(result).toMatchObject({ role: 'tool', content: '{"sky":"blue"}' })
  })

  test.each([
    ['zodSchema()', zodSchema(city)],
    [
      'a JSON Schema',
      jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
    ],
    [
      'a JSON Schema with a custom check',
      jsonSchema<object>(
        { type: 'object', properties: { city: { type: 'string' } } },
        { validate: () => ({ success: false, error: new Error('city is no text') }) },
      ),
    ],
  ])('arguments that do not match %s do not reach them', async (_, inputSchema) => {
    const ran: unknown[] = []
    const { result } = await run(
      { weather: tool({ description: 'W.', inputSchema, execute: (input) => void ran.push(input) }) },
      { city: 5 },
    )
    expect(ran).toEqual([])
    expect(result).toMatchObject({ role: 'tool', content: expect.stringMatching(/city/) as string })
  })

  test('that yield emit progress, and the last value is the result', async () => {
    const { result, events } = await run(
      {
        weather: tool({
          description: 'W.',
          inputSchema: city,
          async *execute() {
            yield 'looking'
            yield 'sunny'
          },
        }),
      },
      { city: 'Lisbon' },
    )
    expect(result).toMatchObject({ content: 'sunny' })
    expect(events.filter(({ type }) => type === 'tool_progress')).toMatchObject([
      { progress: 'looking' },
      { progress: 'sunny' },
    ])
  })

  test.each([
    [{ type: 'text', value: 'Sunny.' }, { content: 'Sunny.' }],
    [{ type: 'json', value: { sky: 'blue' } }, { content: '{"sky":"blue"}' }],
    [
      { type: 'error-text', value: 'No such city.' },
      { content: "The tool 'weather' failed: No such city.", data: { status: 'error' } },
    ],
    [
      { type: 'error-json', value: { code: 7 } },
      { content: 'The tool \'weather\' failed: {"code":7}', data: { status: 'error' } },
    ],
    [
      { type: 'execution-denied', reason: 'Not here.' },
      { content: expect.stringMatching(/because of its policy: Not here\.$/), data: { status: 'denied' } },
    ],
    [
      {
        type: 'content',
        value: [
          { type: 'text', text: 'The sky:' },
          { type: 'image-data', data: 'iVBO', mediaType: 'image/png' },
          {
            type: 'file',
            data: { type: 'url', url: 'https://sky.test/a.pdf' },
            mediaType: 'application/pdf',
          },
        ],
      },
      {
        content: expect.stringMatching(/^The sky:/),
        media: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          { type: 'file', file: { file_data: 'https://sky.test/a.pdf' } },
        ],
      },
    ],
    [
      { type: 'content', value: [{ type: 'custom' }] },
      { content: expect.stringMatching(/part "custom", which is not supported/) },
    ],
    [{ type: 'other' }, { content: expect.stringMatching(/the type "other", which is not supported/) }],
  ])('toModelOutput %j is the text that the model reads', async (output, message) => {
    const requests: unknown[] = []
    const { result } = await run(
      {
        weather: tool({
          description: 'W.',
          inputSchema: city,
          execute: () => 7,
          toModelOutput: (options) => {
            requests.push(options)
            return output as never
          },
        }),
      },
      { city: 'Lisbon' },
    )
    expect(requests).toEqual([{ toolCallId: 'c1', input: { city: 'Lisbon', days: 1 }, output: 7 }])
    expect(result).toMatchObject({ role: 'tool', ...message })
  })

  test('without execute are client tools, and needsApproval asks a person', async () => {
    const client = await run({ pick: tool({ description: 'P.', inputSchema: city }) }, { city: 'Lisbon' })
    const asks = ({ events }: typeof client) => events.some(({ type }) => type === 'approval_requested')
    expect((await client.run.result).pending).toMatchObject([{ name: 'pick' }])
    expect(asks(client)).toBe(false)
    const requests: unknown[] = []
    const book = tool({
      description: 'B.',
      inputSchema: city,
      needsApproval: ({ city: name }, options) => {
        requests.push(options)
        return name === 'Lisbon'
      },
      execute: () => 'booked',
    })
    const waits = await run({ book }, { city: 'Lisbon' }, { user: 'ann' })
    expect((await waits.run.result).pending).toMatchObject([{ name: 'book' }])
    expect(asks(waits)).toBe(true)
    expect(requests[0]).toMatchObject({ messages: [], experimental_context: { user: 'ann' } })
    const free = await run({ book }, { city: 'Porto' })
    expect(free.result).toMatchObject({ content: 'booked' })
  })

  test.each([
    [undefined, 'invalid_argument', /aiTools\(tools\) must be AI SDK tools by name/],
    [
      { x: null },
      'invalid_tool',
      /AI SDK tool 'x' has no inputSchema\. Pass the return value of tool\(\{ … \}\)\./,
    ],
    [{ x: { description: 'X.' } }, 'invalid_tool', /has no inputSchema/],
    [{ x: { type: 'provider', inputSchema: city } }, 'invalid_tool', /is executed by its provider/],
    [{ x: { description: () => 'X.', inputSchema: city } }, 'invalid_tool', /a function as its description/],
    [{ x: { inputSchema: city } }, 'invalid_tool', /description is missing/],
    [
      { x: { description: 'X.', inputSchema: city, needsApproval: true } },
      'invalid_tool',
      /but has no execute/,
    ],
    [{ x: { description: 'X.', inputSchema: z3.object({}) } }, 'invalid_tool', /has no JSON Schema/],
    [
      { x: { description: 'X.', inputSchema: jsonSchema(Promise.resolve({ type: 'object' })) } },
      'invalid_tool',
      /is a promise\. Await it first/,
    ],
    [{ 'a b': { description: 'X.', inputSchema: city } }, 'invalid_tool', /cannot be named 'a b'/],
  ])('%j are refused with a remedy', (tools, code, words) => {
    expect(() => aiTools(tools as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(words) as string }) as Error,
    )
  })
})
