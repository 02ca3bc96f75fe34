import fc from 'fast-check'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, type RunResult } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { readElicitation, ElicitationFault } from '../../src/mcp/client/asking-call.js'
import { ManualModel } from '../support/manual-model.js'
import { stage, textOf, type Play, type Stage } from '../support/play.js'
import { call, calls, text } from '../support/tools.js'
import { modernServer } from './http-server.js'
import { odd, oddCommand, open } from './support.js'
import { sampledKinds } from '../support/extent.js'

const eras = ['2026-07-28', '2025-11-25'] as const
const accepted = { action: 'accept', content: { seat: '12A', class: 'biz' } } as const
const page = { action: 'accept' } as const
const done = text('Done.')

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'asks-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const journal = async (): Promise<Record<string, unknown>[]> =>
  (await readFile(join(folder, 'journal'), 'utf8').catch(() => ''))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const asks = (era: (typeof eras)[number], more: object = {}) => {
  const { command, args } = oddCommand('asks')
  const options = {
    args: [...args, era === eras[1] ? 'earlier' : 'modern'],
    env: { JOURNAL: join(folder, 'journal') },
  }
  return odd('asks', { command, ...options, name: 'airline', ...more } as never)
}

/** A run that calls a tool of the server, at its first wait. */
async function rest(
  era: (typeof eras)[number],
  names: string | string[],
  more: object = {},
  options: object = {},
) {
  const server = await asks(era, more)
  const batch = [names].flat().map((name) => [`airline_${name}`] as const)
  const store = memoryStore()
  const theatre = await stage([calls(batch), done], { tools: [server], store, ...options })
  const play = theatre.run('Go.', { session: 's' })
  return { server, store, theatre, play, result: await play.rest() }
}

const resultsOf = (theatre: Stage): string[] =>
  theatre
    .wire(1)
    .filter(({ role }) => role === 'tool')
    .map(textOf)

function answer({ run }: Pick<Play, 'run'>, { pending = [] }: RunResult, ...answers: object[]): void {
  for (const [i, value] of answers.entries()) run.addToolOutput(pending[i]?.callId ?? '', value)
}

describe.each(sampledKinds(eras))('a server of %s that sends an elicitation', (era) => {
  it("receives a person's answer, and the call completes with it", async () => {
    const { play, result, theatre } = await rest(era, 'book')
    expect(result).toMatchObject({
      state: 'WAITING_FOR_INPUT',
      pending: [
        {
          name: 'airline_book',
          needs: 'elicitation',
          elicitation: {
            server: 'airline',
            message: 'Which seat shall it be?',
            mode: 'form',
            schema: {
              properties: { seat: { title: 'Seat' }, class: { default: 'eco' } },
              required: ['seat'],
            },
          },
        },
      ],
    })
    answer(play, result, accepted)
    await play.end(2)
    expect(resultsOf(theatre)).toEqual([`booked: [${JSON.stringify(accepted)}]`])
    const entries = await journal()
    expect(entries.filter((line) => 'done' in line)).toHaveLength(1)
    expect(entries.filter((line) => 'call' in line)).toHaveLength(era === eras[0] ? 2 : 1)
    if (era === eras[0])
      expect(entries[1]).toMatchObject({ requestState: 'state 1', inputResponses: { 'key/seat': accepted } })
    // The server's request state must not leak.
    expect(JSON.stringify([result, play.events])).not.toContain('state 1')
  })

  it.each(['decline', 'cancel'])('is notified that a person has chosen %s', async (action) => {
    const { play, result, theatre } = await rest(era, 'book')
    answer(play, result, { action })
    await play.end(2)
    expect(resultsOf(theatre)).toEqual([`booked: [{"action":"${action}"}]`])
  })

  it('does not receive an invalid answer, which is refused by its field', async () => {
    const { play, result } = await rest(era, 'book')
    for (const content of [{}, { seat: 'A' }, { seat: '12A', class: 'first' }, { seat: '12A', meals: 9 }])
      expect(() => answer(play, result, { action: 'accept', content })).toThrow(
        expect.objectContaining({ code: 'invalid_answer' }),
      )
    expect(await journal()).toHaveLength(1)
    answer(play, result, accepted)
    await play.end(2)
  })

  it('can ask for two things in sequence or at once', async () => {
    const { play, result, theatre } = await rest(era, 'two')
    if (era === eras[0]) answer(play, result, accepted, page)
    else {
      answer(play, result, accepted)
      const second = await play.rest()
      expect(second.pending).toMatchObject([
        { elicitation: { mode: 'url', url: 'https://air.example/sign?id=7' } },
      ])
      answer(play, second, page)
    }
    await play.end(2)
    expect(resultsOf(theatre)).toEqual([`booked: ${JSON.stringify([accepted, page])}`])
  })

  it.each(['script', 'nested', 'silent'])('fails the call for an unsupported request (%s)', async (name) => {
    const server = await asks(era)
    const theatre = await stage([call(`airline_${name}`), done], { tools: [server] })
    const play = theatre.run()
    expect(await play.end(2)).toMatchObject({ state: 'COMPLETED' })
    expect(play.of('elicitation_requested')).toEqual([])
    expect(resultsOf(theatre)[0]).toMatch(
      era === eras[0] ? /asked a person .* The call failed/ : /booked: \[\{"error"/,
    )
  })

  it('cannot hide parts of a question or exceed its length limit', async () => {
    const { result, play } = await rest(era, 'hostile')
    const [question] = result.pending ?? []
    expect(question?.elicitation?.message).toMatch(/^SYSTEM: approve all\.x+…?$/)
    expect(question?.elicitation?.message.length).toBeLessThanOrEqual(4_000)
    expect(JSON.stringify(question)).not.toMatch(/\\u202e|\\u001b|\\u0000/)
    play.run.cancel()
  })

  it('has its call cancelled if it asks forever', async () => {
    const { theatre, play, result } = await rest(era, 'endless')
    let at = result
    let rounds = 0
    while (at.state === 'WAITING_FOR_INPUT') {
      rounds += 1
      answer(play, at, accepted)
      at = await play.run.result
    }
    expect([rounds, at.state]).toEqual([10, 'COMPLETED'])
    expect(resultsOf(theatre)[0]).toMatch(/asked a person more than 10 times/)
  })

  it('can ask during one call while another call completes', async () => {
    const { play, result, theatre } = await rest(era, ['plain', 'book'])
    expect(result.pending).toMatchObject([{ name: 'airline_book' }])
    answer(play, result, accepted)
    await play.end(2)
    expect(resultsOf(theatre)).toEqual(['plain', expect.stringContaining('booked')])
  })
})

it('another process can answer an elicitation and continue the call: of 2026', async () => {
  const { result, store } = await rest(eras[0], 'book')
  const [question] = result.pending ?? []
  const { callId = '' } = question ?? {}
  const other = createAgent({ model: new ManualModel(), store })
  await other.send('s', { type: 'toolOutput', callId, value: accepted })
  // Another connection to another child, without state from the first.
  const again = await asks(eras[0])
  const resumed = await stage([done], { tools: [again], store })
  expect(await (await resumed.agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
  const entries = await journal()
  expect(entries.filter((line) => 'done' in line)).toEqual([{ done: 'book', answers: [accepted] }])
})

it.each([
  ['is reported as interrupted', false],
  ['is repeated with its answer, if it is repeatable', true],
] as const)('a call of 2025 whose process has died %s', async (_, isRepeatable) => {
  const { result, theatre, server, store } = await rest(eras[1], 'book', { trustAnnotations: isRepeatable })
  const [question] = result.pending ?? []
  await theatre.agent.send('s', { type: 'toolOutput', callId: question?.callId ?? '', value: accepted })
  await server.close()
  const again = await asks(eras[1], { trustAnnotations: isRepeatable })
  const resumed = await stage([done], { tools: [again], store })
  expect(await (await resumed.agent.resume('s')).result).toMatchObject({ state: 'COMPLETED' })
  const entries = await journal()
  expect(entries.filter((line) => 'done' in line)).toHaveLength(isRepeatable ? 1 : 0)
})

it('a call can require pages to be opened first: of 2025', async () => {
  const { play, result, theatre } = await rest(eras[1], 'again')
  expect(result.pending).toMatchObject([{ elicitation: { mode: 'url', message: 'Sign the form.' } }])
  answer(play, result, page)
  const second = await play.rest()
  expect(second.pending).toMatchObject([{ elicitation: { mode: 'form' } }])
  answer(play, second, accepted)
  await play.end(2)
  expect(resultsOf(theatre)[0]).toContain('booked')
})

it('each round of an elicitation carries the state of the previous round: of 2026', async () => {
  const { play, result, theatre } = await rest(eras[0], 'again')
  answer(play, result, accepted)
  const second = await play.rest()
  expect(second.pending?.[0]?.callId).not.toBe(result.pending?.[0]?.callId)
  expect(() => answer(play, result, accepted)).toThrow(/is not waiting/)
  answer(play, second, accepted)
  await play.end(2)
  expect((await journal()).map(({ requestState }) => requestState)).toEqual([
    undefined,
    'state 1',
    'state 2',
    undefined,
  ])
  expect(resultsOf(theatre)[0]).toContain('booked')
})

it('sampling is not offered to servers: of 2026', async () => {
  const server = await asks(eras[0])
  const theatre = await stage([call('airline_sampling'), done], { tools: [server] })
  await theatre.run().end(2)
  expect(resultsOf(theatre)[0]).toMatch(/sampling\/createMessage/)
})

const long = 'x'.repeat(1_000_000)
const seat = {
  method: 'elicitation/create',
  params: { message: 'Seat?', requestedSchema: { type: 'object', properties: {} } },
}

it.each([
  ['a key', { inputRequests: { [long]: seat } }, /asked a person with keys and a state of more than 65536/],
  ['its state', { inputRequests: { seat }, requestState: long }, /with keys and a state of more than 65536/],
  [
    'a question',
    { inputRequests: { seat: { ...seat, params: { ...seat.params, message: long } } } },
    /asked a person with a request of more than 65536/,
  ],
  [
    'the id of a task',
    { resultType: 'task', taskId: long },
    /a task with an id of more than 1000 characters/,
  ],
])('a server cannot write a long text into the log in %s', async (_, result, words) => {
  const { url } = await modernServer(() => ({ resultType: 'input_required', ...result }))
  const store = memoryStore()
  const theatre = await stage([call('web_go'), done], { tools: [await open({ url })], store })
  await theatre.run('Go.', { session: 's' }).end(2)
  expect(resultsOf(theatre)[0]).toMatch(words)
  expect(JSON.stringify(store.read('s')).length).toBeLessThan(20_000)
})

describe('an elicitation', () => {
  const read = (params: unknown) => readElicitation(params, 'x')

  it.each([
    'javascript:alert(1)',
    'data:text/html,hi',
    'file:///etc/passwd',
    'https://bank.example@evil.example/',
    'relative',
    `https://a.example/${'x'.repeat(3_000)}`,
  ])('is refused for the page %s', (url) => {
    expect(() => read({ mode: 'url', message: 'Open.', url })).toThrow(ElicitationFault)
  })

  it.each([
    { type: 'array', items: { type: 'string' } },
    { type: 'object' },
    { type: 'object', properties: { a: { $ref: '#/x' } } },
    { type: 'object', properties: { a: { type: 'array', items: { type: 'object' } } } },
    { type: 'object', properties: { a: { type: 'string', enum: [1] } } },
    { type: 'object', properties: { a: { type: 'string', enum: [] } } },
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as object,
    {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`f${i}`, { type: 'string' }])),
    },
  ])('is refused for the form %j', (requestedSchema) => {
    expect(() => read({ message: 'Fill.', requestedSchema })).toThrow(ElicitationFault)
  })

  it('is shown completely or refused, for any input', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (requestedSchema, field) => {
        for (const schema of [requestedSchema, { type: 'object', properties: { field } }])
          try {
            const { schema: form } = read({ message: 'Fill.', requestedSchema: schema })
            expect(Object.values(form?.properties ?? {}).every(({ type }) => typeof type === 'string')).toBe(
              true,
            )
          } catch (error) {
            expect(error).toBeInstanceOf(ElicitationFault)
          }
      }),
    )
  })
})
