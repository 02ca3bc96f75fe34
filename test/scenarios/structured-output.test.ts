import { createActor, waitFor } from 'xstate'
import { z } from 'zod'
import {
  type AgentOptions,
  ConfigError,
  createAgent,
  defineShield,
  InvalidOutputError,
  memoryStore,
  objectOrThrow,
  openaiChat,
  orThrow,
} from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { createOneCallModel } from '../support/manual-model.js'
import { played, stage, textOf } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'
import { sampledKinds } from '../support/extent.js'

const output = z.object({ city: z.string(), days: z.int() })
const paris = { city: 'Paris', days: 3 }
const json = JSON.stringify(paris)
const wrong = JSON.stringify({ city: 7, days: 3 })

const byFormat: Partial<AgentOptions> = { output: { schema: output, mode: 'response_format' } }
const byTool: Partial<AgentOptions> = { output: { schema: output, mode: 'tool' } }

/** The answer in the mode's format. */
const answers: Record<string, { options: Partial<AgentOptions>; answer: (words: string) => Turn }> = {
  'response format': { options: byFormat, answer: (words) => text(words) },
  'final tool': { options: byTool, answer: (words) => call('final_answer', words) },
}

/** The output settings of a request. */
interface Asked {
  tools?: unknown[]
  response_format?: unknown
}

const modes = sampledKinds(
  Object.entries(answers).flatMap(([mode, input]) =>
    [true, false].map((stream) => ({ mode, stream, ...input })),
  ),
)

describe.each(modes)('an object by the $mode, stream $stream', ({ options, answer, stream }) => {
  it('is in the result, and the output is its text', async () => {
    const { result, run, of, stage: theatre } = await played([answer(json)], { ...options, stream })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: json, object: paris })
    expect(result).not.toHaveProperty('outputProblem')
    expect(objectOrThrow(result)).toEqual(paris)
    expect(theatre.requests[0]?.body.stream).toBe(stream)
    expect(
      of('stream_chunk')
        .map((chunk) => chunk.text)
        .join(''),
    ).toBe(json)
    expect(of('assistant_message')).toMatchObject([{ message: { content: json } }])
    expect(of('tool_call')).toEqual([])
    expect(run.state).toBe('COMPLETED')
  })

  it('is repaired if it does not match the schema, and only the model reads each problem', async () => {
    const { result, of, stage: theatre } = await played([answer(wrong), answer(json)], { ...options, stream })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris, output: json, steps: 2 })
    const repair = textOf(theatre.wire(1).at(-1))
    expect(repair).toContain('- answer.city: Invalid input: expected string, received number')
    expect(repair).toMatch(/Give the whole corrected answer again/)
    expect(theatre.wire(1).at(-2)).toMatchObject({ role: 'assistant', content: wrong })
    expect(result.messages.find(({ internal }) => internal)).toMatchObject({
      data: { reason: 'output_repair' },
    })
    expect(of('user_message')).toHaveLength(1)
    expect(of('guardrail')).toMatchObject([
      { guard: 'invalid_output', action: 'recover', message: expect.stringContaining('1 of 2') },
    ])
  })

  it('that never matches ends the run after two repairs, with the raw text and the problem', async () => {
    const { result } = await played([answer(wrong), answer(wrong), answer('{}')], { ...options, stream })
    expect(result).toMatchObject({ state: 'ERROR', reason: 'invalid_output', output: '{}', steps: 3 })
    expect(result).not.toHaveProperty('object')
    expect(result.error).toMatchObject({ code: 'invalid_output', recoverable: false })
    expect(result.error?.message).toMatch(
      /answer\.city.*\n.*answer\.days[^]*completion\.maxOutputRepairs \(2\)/,
    )
    expect(result.outputProblem).toContain('answer.city')
    expect(() => orThrow(result)).toThrow(InvalidOutputError)
  })

  it('is requested after the tools have finished', async () => {
    const look = tool('look')
    const { result } = await played([call('look', { at: 'map' }), answer(json)], {
      ...options,
      stream,
      tools: [look],
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris, steps: 2 })
    expect(look.inputs).toEqual([{ at: 'map' }])
  })

  it('that is truncated is requested again from its start, and never joined', async () => {
    const cut = { ...answer('{"city":"Pa'), finishReason: 'length' }
    const { result, stage: theatre } = await played([cut, answer(json)], { ...options, stream })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris, output: json })
    expect(textOf(theatre.wire(1).at(-1))).toMatch(/whole answer again from the start/)
  })

  it('that stays truncated keeps the raw text, and the result states that it was not validated', async () => {
    const cut = { ...answer('{"city":"Pa'), finishReason: 'length' }
    const { result, of } = await played([cut], {
      ...options,
      stream,
      guardrails: { maxTokensRecoveries: 0 },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'max_tokens', output: '{"city":"Pa' })
    expect(result).not.toHaveProperty('object')
    expect(result.outputProblem).toMatch(/raw text/)
    expect(of('warning')).toMatchObject([{ code: 'output_not_validated' }])
    expect(() => objectOrThrow(result)).toThrow(InvalidOutputError)
  })

  it('is also requested as the conclusion at the step limit', async () => {
    const { result, stage: theatre } = await played([call('look'), answer(json)], {
      ...options,
      stream,
      tools: [tool('look')],
      limits: { maxSteps: 1, onLimit: 'conclude' },
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', reason: 'max_steps', output: json, object: paris })
    expect(result.error?.message).not.toMatch(/not validated/)
    const request = theatre.requests[1]?.body as Asked | undefined
    expect(request?.response_format === undefined ? request?.tools : [request.response_format]).toHaveLength(
      1,
    )
  })
})

describe('the response format', () => {
  it('is strict where possible, and is part of every request, next to the tools', async () => {
    const turns = [call('look'), text(json)]
    const { stage: theatre } = await played(turns, { ...byFormat, tools: [tool('look')], toolChoice: 'auto' })
    for (const { body } of theatre.requests) {
      expect(body).toMatchObject({
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'final_answer',
            strict: true,
            schema: { required: ['city', 'days'], additionalProperties: false },
          },
        },
        tool_choice: 'auto',
      })
      expect(body.tools).toHaveLength(1)
    }
  })

  it('is not strict if that would change which values the schema accepts', async () => {
    const schema = z.object({ city: z.string().optional() })
    const { result, stage: theatre } = await played([text('{}')], {
      output: { schema, mode: 'response_format' },
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: {} })
    expect(theatre.requests[0]?.body).toMatchObject({ response_format: { json_schema: { strict: false } } })
  })

  it.each([
    ['openai', true, true],
    ['google', true, false],
    ['google', false, true],
    ['deepseek', false, false],
  ])('is chosen automatically at %s with tools %s: %s', async (provider, hasTools, isFormat) => {
    const theatre = await stage([text(json)])
    const model = openaiChat({ model: 'm', baseURL: theatre.rehearsal.url, apiKey: 'none', provider })
    const tools = hasTools ? [tool('look')] : []
    const result = await createAgent({ model, output, tools }).run('Go.').result
    expect(result.object).toEqual(paris)
    const body = theatre.requests[0]?.body as Asked | undefined
    expect(body?.response_format !== undefined).toBe(isFormat)
    expect(body?.tools ?? []).toHaveLength(tools.length + (isFormat ? 0 : 1))
  })
})

describe('the final tool', () => {
  it('is listed next to the tools, with the schema as its parameters, and does not change the tool choice', async () => {
    const { stage: theatre } = await played([call('final_answer', json)], {
      ...byTool,
      tools: [tool('look')],
      toolChoice: 'required',
    })
    expect(theatre.requests[0]?.body).toMatchObject({
      tool_choice: 'required',
      tools: [
        { function: { name: 'look' } },
        { function: { name: 'final_answer', parameters: { required: ['city', 'days'] } } },
      ],
    })
    expect(theatre.requests[0]?.body).not.toHaveProperty('response_format')
  })

  it('gets another name if a tool has its name', async () => {
    const mine = tool('final_answer')
    const { result, stage: theatre } = await played(
      [call('final_answer', { mine: true }), call('final_answer_2', json)],
      { ...byTool, tools: [mine] },
    )
    expect(mine.inputs).toEqual([{ mine: true }])
    expect(result.object).toEqual(paris)
    expect(theatre.requests[0]?.body).toMatchObject({
      tools: [{ function: { name: 'final_answer' } }, { function: { name: 'final_answer_2' } }],
    })
  })

  it('takes precedence over the calls next to it, which are dropped with a warning; the text next to it becomes reasoning', async () => {
    const look = tool('look')
    const both = calls([
      ['look', { a: 1 }],
      ['final_answer', json],
      ['final_answer', wrong],
    ])
    const { result, of } = await played([{ ...both, text: 'So it is Paris.' }], { ...byTool, tools: [look] })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris, steps: 1 })
    expect(look.inputs).toEqual([])
    expect(of('warning')).toMatchObject([
      { code: 'calls_dropped', message: expect.stringContaining('look, final_answer') },
    ])
    expect(result.messages.at(-1)).toMatchObject({ content: json, reasoning: 'So it is Paris.' })
  })

  it('is not needed if a text answer matches, fenced or not', async () => {
    expect((await played([text(json)], byTool)).result).toMatchObject({ object: paris, steps: 1 })
    const fenced = `Here:\n\`\`\`json\n${json}\n\`\`\``
    expect((await played([text(fenced)], byTool)).result).toMatchObject({ object: paris, output: fenced })
  })

  it('is the only tool of a conclusion, and the conclusion prompt names it', async () => {
    const { stage: theatre } = await played([call('look'), call('final_answer', json)], {
      ...byTool,
      tools: [tool('look')],
      limits: { maxSteps: 1, onLimit: 'conclude' },
    })
    expect(theatre.requests[1]?.body).toMatchObject({ tools: [{ function: { name: 'final_answer' } }] })
    expect(textOf(theatre.wire(1).at(-1))).toMatch(/final answer[^]*by calling final_answer/)
  })
})

describe('a run with an output schema', () => {
  it('that reaches a limit keeps the raw text, and states that it was not validated', async () => {
    const { result } = await played([call('look', {}, { text: 'Looking.' })], {
      ...byFormat,
      tools: [tool('look')],
      limits: { maxSteps: 1 },
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: 'Looking.' })
    expect(result).not.toHaveProperty('object')
    expect(result.error?.message).toMatch(/limits\.maxSteps.*not validated/)
    expect(result.outputProblem).toMatch(/raw text/)
  })

  it('keeps a conclusion that does not match, with the problem', async () => {
    const { result } = await played([call('look'), text(wrong)], {
      ...byFormat,
      tools: [tool('look')],
      limits: { maxSteps: 1, onLimit: 'conclude' },
    })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: wrong, steps: 2 })
    expect(result.outputProblem).toContain('answer.city')
    expect(result.error?.message).toMatch(/not validated/)
  })

  it('has no repair left at the step limit, and keeps the mismatched text', async () => {
    const { result } = await played([text(wrong)], { ...byFormat, limits: { maxSteps: 1 } })
    expect(result).toMatchObject({ state: 'MAX_STEPS', output: wrong })
    expect(result.outputProblem).toContain('answer.city')
  })

  it('keeps a matching object that crosses the budget; a mismatch is not a natural end', async () => {
    const limits = { tokenBudget: 10 }
    const usage = { input: 5, output: 20 }
    const budget = { onOvershoot: 'complete' } as const
    const crossing = await played([text(json, { usage })], { ...byFormat, limits })
    expect(crossing.result).toMatchObject({ state: 'BUDGET_EXCEEDED', object: paris })
    const bad = await played([text(wrong, { usage })], { ...byFormat, limits, budget })
    expect(bad.result).toMatchObject({ state: 'BUDGET_EXCEEDED', output: wrong })
    expect(bad.of('guardrail')).toEqual([])
  })

  it('makes as many repairs as configured, and none for 0', async () => {
    const none = await played([text('Paris')], { ...byFormat, completion: { maxOutputRepairs: 0 } })
    expect(none.result).toMatchObject({ state: 'ERROR', reason: 'invalid_output', output: 'Paris', steps: 1 })
    expect(none.result.outputProblem).toMatch(/not a JSON object/)
  })

  it('restarts the count of repairs with each user message', async () => {
    const theatre = await stage([text(wrong), text(json), text(wrong), text(json)], {
      ...byFormat,
      interactive: true,
      completion: { maxOutputRepairs: 1 },
    })
    const play = theatre.run()
    const { seq: first } = await play.event('state_changed', ({ to }) => to === 'WAITING_FOR_INPUT')
    play.run.reply('And now?')
    await play.event('state_changed', ({ to, seq }) => to === 'WAITING_FOR_INPUT' && seq > first)
    play.run.cancel()
    expect(await play.end(4)).toMatchObject({ state: 'CANCELLED', object: paris })
  })

  it('outputs the refusal of the model, and no object', async () => {
    const { result } = await played([{ refusal: 'I will not.' }], byFormat)
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'refusal', output: 'I will not.' })
    expect(result.outputProblem).toMatch(/raw text/)
    expect(result).not.toHaveProperty('object')
  })

  it('repairs an empty answer if no guard handles it', async () => {
    const turns = [text(''), text(json)]
    const { result } = await played(turns, { ...byFormat, guardrails: { emptyAnswer: null } })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris })
  })

  it('returns the parsed value of the schema, and logs the original text of the model', async () => {
    const schema = z.object({
      at: z.iso.date().transform((day) => new Date(day)),
      note: z.string().default('-'),
    })
    const store = memoryStore()
    const theatre = await stage([text('{"at":"2026-01-02"}')], { output: schema, store })
    const result = await theatre.run('Go.', { session: 's' }).end(1)
    expect(result.object).toEqual({ at: new Date('2026-01-02'), note: '-' })
    expect(result.output).toBe('{"at":"2026-01-02"}')
    const resumed = await theatre.agent.resume('s')
    expect((await resumed.result).object).toEqual(result.object)
  })

  it.each(Object.entries(answers))(
    'returns the object that the shields have cleared, by the %s',
    async (_, { options, answer }) => {
      const hides = defineShield({
        name: 'hides-Paris',
        check: (content) => ({ action: 'redact', content: content.replace('Paris', '***') }),
      })
      const { result, of } = await played([answer(json)], { ...options, shields: { output: [hides] } })
      expect(result).toMatchObject({ state: 'COMPLETED', object: { city: '***', days: 3 } })
      expect(JSON.stringify([result, of('stream_chunk'), of('assistant_message')])).not.toContain('Paris')
    },
  )

  it('has no object if a shield blocked it, and states so', async () => {
    const breaks = defineShield({ name: 'breaks', check: () => ({ action: 'redact', content: 'Hidden.' }) })
    const { result } = await played([text(json)], { ...byFormat, shields: { output: [breaks] } })
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'Hidden.' })
    expect(result.outputProblem).toMatch(/not a JSON object/)
    const blocks = defineShield({ name: 'blocks', check: () => ({ action: 'block', message: 'Not that.' }) })
    const blocked = await played([text(json)], { ...byFormat, shields: { output: [blocks] } })
    expect(blocked.result.state).toBe('BLOCKED')
    expect(blocked.result).not.toHaveProperty('object')
    expect(blocked.result.outputProblem).toMatch(/raw text/)
  })

  it('accepts a schema that validates asynchronously', async () => {
    const schema = z.object({
      city: z.string().refine(async (city) => Promise.resolve(city !== 'Rome'), 'is not an option'),
    })
    const { result, stage: theatre } = await played([text('{"city":"Rome"}'), text('{"city":"Oslo"}')], {
      output: schema,
    })
    expect(result).toMatchObject({ state: 'COMPLETED', object: { city: 'Oslo' } })
    expect(textOf(theatre.wire(1).at(-1))).toContain('answer.city: is not an option')
  })

  it('accepts a plain JSON Schema, and validates it like any other', async () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string', minLength: 2 }, days: { type: 'integer' } },
      required: ['city', 'days'],
    } as const
    const { result, stage: theatre } = await played([text('{"city":"P"}'), text(json)], { output: schema })
    expect(result).toMatchObject({ state: 'COMPLETED', object: paris })
    expect(textOf(theatre.wire(1).at(-1))).toMatch(/answer\.city: .*\n.*answer\.days: /)
  })

  it('is refused before anything is sent if its JSON Schema cannot be validated', async () => {
    const schema = { type: 'object', if: {}, else: {} } as const
    for (const options of [{}, { store: memoryStore() }]) {
      const theatre = await stage([text(json)], { output: schema, ...options })
      const refused = theatre.run('Go.', { session: 's' }).run.result
      await expect(refused).rejects.toThrow(ConfigError)
      await expect(refused).rejects.toThrow(/if\/then/)
      expect(theatre.requests).toHaveLength(0)
    }
  })

  it('is also refused for a bare machine', async () => {
    const theatre = await stage([text(json), text(wrong), text(wrong), text(wrong)], byFormat)
    const { agent } = theatre
    for (const expected of [{ object: paris }, { outputProblem: expect.stringContaining('city') }]) {
      const actor = createActor(agent.machine, { input: agent.createInput('Go.') })
      actor.start()
      const { output: plain } = await waitFor(actor, ({ status }) => status === 'done')
      if (plain === undefined) throw new Error('The machine has no output.')
      expect(plain).not.toHaveProperty('object')
      expect(await agent.withObject(plain)).toMatchObject(expected)
      expect(agent.objectOf(plain)).toEqual(expected.object)
    }
  })

  it('returns the object immediately only if the schema is synchronous', async () => {
    const plain = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const
    const agent = createAgent({ model: createOneCallModel('add'), output: plain })
    const ended = { state: 'COMPLETED', resumable: false, output: '{"city":"Paris"}' } as never
    expect(() => agent.objectOf(ended)).toThrow(expect.objectContaining({ code: 'async_schema' }))
    expect(createAgent({ model: createOneCallModel('add') }).objectOf(ended)).toBeUndefined()
    // A promise, by a forgotten `await`.
    const promised = Promise.resolve(ended) as never
    expect(() => agent.objectOf(promised)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    await expect(agent.withObject(undefined as never)).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  describe('a streamed object', () => {
    const slowly: Partial<Turn> = { chunkSize: 4 }

    /** The object events of a run with these turns, and its end. */
    async function partsOf(turns: Turn[], options: Partial<AgentOptions> = byFormat) {
      const play = (await stage(turns, options)).run().skipBackOff()
      const parts: unknown[] = []
      const completed = new Promise<void>((complete) => {
        play.run.object$.subscribe({ next: (part) => parts.push(part), complete })
      })
      const result = await play.end(turns.length)
      await completed
      return { parts, result }
    }

    it('is emitted in parts, the last of which is complete', async () => {
      const { parts, result } = await partsOf([text(json, slowly)])
      for (const part of parts)
        expect(['{}', '{"city":"', json].some((start) => JSON.stringify(part).startsWith(start))).toBe(true)
      expect(parts.at(-1)).toEqual(paris)
      expect(result).toMatchObject({ object: paris })
    })

    it('is emitted again after a retry and after a repair', async () => {
      const { parts, result } = await partsOf([
        text('{"city":"Rome","days":', { ...slowly, cutAfter: 4 }),
        text(wrong, slowly),
        text(json, slowly),
      ])
      expect(parts).toContainEqual({ city: 7, days: 3 })
      expect(parts.at(-1)).toEqual(paris)
      expect(
        JSON.stringify(parts.slice(parts.findIndex((part) => 'days' in (part as object)))),
      ).not.toContain('Rome')
      expect(result).toMatchObject({ object: paris })
    })

    it('is emitted whole if the answer is a call', async () => {
      expect((await partsOf([call('final_answer', json)], byTool)).parts).toEqual([paris])
    })

    it('contains only content that output shields have cleared', async () => {
      const secret = defineShield({
        name: 'no_paris',
        check: (words) => ({ action: 'redact', content: words.replace('Paris', '…') }),
      })
      const { parts } = await partsOf([text(json, slowly)], { ...byFormat, shields: { output: [secret] } })
      expect(JSON.stringify(parts)).not.toContain('Paris')
      expect(parts.at(-1)).toEqual({ city: '…', days: 3 })
    })

    it('is sent from its start to a subscriber that joins midway', async () => {
      const play = (await stage([text(json, slowly)], byFormat)).run()
      const parts: unknown[] = []
      play.run.events$.subscribe((event) => {
        if (event.type === 'stream_chunk' && event.text !== '' && parts.length === 0 && !isSubscribed) {
          isSubscribed = true
          play.run.object$.subscribe((part) => parts.push(part))
        }
      })
      let isSubscribed = false as boolean
      await play.end(1)
      await new Promise(setImmediate)
      expect(parts.at(-1)).toEqual(paris)
    })

    it('causes a warning of the run if a subscriber throws, and no error', async () => {
      const play = (await stage([text(json, slowly)], byFormat)).run()
      play.run.object$.subscribe(() => {
        throw new Error('It broke.')
      })
      expect(await play.end(1)).toMatchObject({ object: paris })
      expect(play.of('warning')).toMatchObject([{ code: 'subscriber_error' }])
    })
  })

  it('has the type of its schema', async () => {
    const theatre = await stage([text(json)])
    const model = openaiChat({ model: 'm', baseURL: theatre.rehearsal.url, apiKey: 'none' })
    const run = createAgent({ model, output }).run('Go.')
    run.object$.subscribe((part) => part satisfies { city?: string; days?: number })
    const { city, days } = objectOrThrow(await run.result)
    expect(`${city satisfies string} ${days satisfies number}`).toBe('Paris 3')
  })
})

it('an agent without an output schema has neither an object nor an object problem', async () => {
  const { result, stage: theatre } = await played([text(json)])
  expect(result).not.toHaveProperty('object')
  expect(result).not.toHaveProperty('outputProblem')
  expect(theatre.requests[0]?.body).not.toHaveProperty('response_format')
})
