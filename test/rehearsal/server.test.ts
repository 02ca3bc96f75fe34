import { createConnection } from 'node:net'
import { SimulatedClock } from 'xstate'
import { type Scenario, startRehearsal } from '../../src/rehearsal/index.js'
import { ask, body, clientOf, complete, playing, post, start, stream, textIn } from './support.js'
import { longTest } from '../support/extent.js'

const text = async (response: Response): Promise<unknown> => {
  const completion = (await response.json()) as { choices: { message: { content: string } }[] }
  return completion.choices[0]?.message.content
}

const errorOf = async (response: Response): Promise<{ status: number; code: string; message: string }> => {
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return { status: response.status, code: error.code, message: error.message }
}

describe('requests', () => {
  test('are recorded with body, headers and time', async () => {
    const clock = new SimulatedClock()
    clock.set(5000)
    const rehearsal = await start({ scenario: { turns: [{ text: 'Hi' }] }, clock })
    const { created } = await clientOf(rehearsal, { 'x-app': 'mine' }).chat.completions.create({
      model: 'gpt',
      messages: ask,
      temperature: 0.5,
    })
    expect(created).toBe(5)
    expect(rehearsal.requests).toHaveLength(1)
    expect(rehearsal.requests[0]).toMatchObject({
      body: { model: 'gpt', messages: ask, temperature: 0.5 },
      headers: { 'x-app': 'mine', authorization: 'Bearer none' },
      at: 5000,
      turn: 0,
      refused: null,
    })
  })

  test('that are not JSON, or not chat requests, are answered with 400 and consume no turn', async () => {
    const rehearsal = await playing({ text: 'Hi' })
    for (const bad of [
      '',
      'nonsense',
      '[]',
      'null',
      '{}',
      body({ messages: [] }),
      body({ messages: [{ role: 'king' }] }),
    ]) {
      expect(await errorOf(await post(rehearsal, bad))).toMatchObject({ status: 400 })
    }
    const { code, message } = await errorOf(
      await post(rehearsal, body({ messages: [{ role: 'user', content: 3 }] })),
    )
    expect(code).toBe('invalid_request')
    expect(message).toBe('Invalid request at messages[0].content: expected a string or an array of parts.')
    expect(rehearsal).toMatchObject({ remaining: 1, requests: [] })
  })

  test('that are too long are answered with 413', async () => {
    const rehearsal = await playing({ text: 'Hi' })
    const response = await post(rehearsal, 'x'.repeat(64 * 1024 * 1024 + 1))
    expect(await errorOf(response)).toMatchObject({ status: 413, code: 'request_too_large' })
  })

  test('for another route are answered with 404 in JSON', async () => {
    const { url } = await playing({})
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['GET', '/chat/completions'],
      ['POST', '/embeddings'],
      ['GET', '/responses'],
    ] as const) {
      expect(await errorOf(await fetch(`${url}${path}`, { method }))).toMatchObject({
        status: 404,
        code: 'unknown_url',
      })
    }
  })

  test('that break off are harmless', async () => {
    const rehearsal = await playing({ text: 'Hi' })
    const socket = createConnection(Number(new URL(rehearsal.url).port), '127.0.0.1')
    socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"model"')
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.destroy()
    expect(await text(await post(rehearsal, body()))).toBe('Hi')
  })
})

describe('turns', () => {
  test('are played in order, and one more request is answered with 400 and a remedy', async () => {
    const rehearsal = await start({ name: 'greeting', turns: [{ text: 'A' }, { text: 'B' }] })
    expect(rehearsal.remaining).toBe(2)
    expect(textIn(await stream(rehearsal))).toBe('A')
    expect(await text(await post(rehearsal, body()))).toBe('B')
    expect(rehearsal.remaining).toBe(0)
    const { status, code, message } = await errorOf(await post(rehearsal))
    expect({ status, code }).toEqual({ status: 400, code: 'rehearsal_exhausted' })
    expect(message).toMatch("All 2 turns of the scenario 'greeting' have been played")
    expect(rehearsal.requests[2]).toMatchObject({ turn: null, refused: message })
  })

  test.each([
    ['repeatLast', ['A', 'B', 'B', 'B'], 0],
    ['loop', ['A', 'B', 'A', 'B'], Infinity],
  ] as const)('continue with %s', async (onExhausted, expected, remaining) => {
    const rehearsal = await start({ turns: [{ text: 'A' }, { text: 'B' }], onExhausted })
    const answers: unknown[] = []
    for (let i = 0; i < 4; i++) answers.push(await text(await post(rehearsal, body())))
    expect(answers).toEqual(expected)
    expect(rehearsal.remaining).toBe(remaining)
  })

  test('can be functions of the request', async () => {
    const rehearsal = await playing(({ body }) => ({ text: `${body.messages.length} message` }))
    expect(await text(await post(rehearsal, body()))).toBe('1 message')
  })

  test('that are functions which throw or return nonsense are answered with 400', async () => {
    const rehearsal = await playing(
      () => {
        throw new Error('Bad day.')
      },
      () => ({ txt: 'Hi' }) as never,
      () => Promise.reject(new Error('Later.')),
    )
    const answers = [
      await errorOf(await post(rehearsal)),
      await errorOf(await post(rehearsal)),
      await errorOf(await post(rehearsal)),
    ]
    expect(answers.map(({ status, code }) => `${status} ${code}`)).toEqual(
      Array(3).fill('400 rehearsal_turn_failed'),
    )
    expect(answers.map(({ message }) => message)).toEqual([
      'turns[0] failed: Bad day.',
      'turns[1] failed: The result of the turn function is invalid at txt: the key is unknown.',
      'turns[2] failed: Later.',
    ])
  })

  test('restart after reset', async () => {
    const rehearsal = await playing({ text: 'A', toolCalls: [{ name: 'f' }] })
    const first = await complete(rehearsal)
    rehearsal.reset()
    expect(rehearsal).toMatchObject({ remaining: 1, requests: [] })
    expect({ ...(await complete(rehearsal)), created: 0 }).toEqual({ ...first, created: 0 })
  })
})

describe('conversations', () => {
  const scenario: Scenario = { turns: [{ text: 'one' }, { text: 'two' }] }

  longTest('each play the scenario from the start, 200 at a time', async () => {
    const rehearsal = await start({ scenario })
    const talk = async (id: number): Promise<unknown[]> => {
      const client = clientOf(rehearsal, { 'x-rehearsal-conversation': `c${id}` })
      const create = () => client.chat.completions.create({ model: 'gpt', messages: ask })
      const answers = [await create(), await create()]
      return answers.map(({ choices }) => choices[0]?.message.content)
    }
    const talks = await Promise.all(Array.from({ length: 200 }, (_, i) => talk(i)))
    expect(talks).toEqual(talks.map(() => ['one', 'two']))
    expect(rehearsal.remaining).toBe(2)
  })

  test('are also distinguished by the user of the request', async () => {
    const rehearsal = await start({ scenario })
    expect(await text(await post(rehearsal, body({ user: 'a' })))).toBe('one')
    expect(await text(await post(rehearsal, body({ user: 'b' })))).toBe('one')
    expect(await text(await post(rehearsal, body({ user: 'a' })))).toBe('two')
    expect(rehearsal.requests.map(({ conversation }) => conversation)).toEqual(['a', 'b', 'a'])
  })

  test('can be distinguished by a function of the caller', async () => {
    const rehearsal = await start({ scenario, conversation: ({ model }) => model })
    expect(await text(await post(rehearsal, body({ model: 'x' })))).toBe('one')
    expect(await text(await post(rehearsal, body({ model: 'y' })))).toBe('one')
  })
})

describe('models', () => {
  const scenarios = { sums: { turns: [{ text: 'sums' }] }, tales: { turns: [{ text: 'tales' }] } }

  test('named rehearsal/NAME play the scenario of that name, and all others the default', async () => {
    const rehearsal = await start({ scenario: { turns: [{ text: 'default' }] }, scenarios })
    expect(await text(await post(rehearsal, body({ model: 'rehearsal/tales' })))).toBe('tales')
    expect(await text(await post(rehearsal, body({ model: 'rehearsal/sums' })))).toBe('sums')
    expect(await text(await post(rehearsal, body({ model: 'gpt-5' })))).toBe('default')
  })

  test('are listed', async () => {
    const rehearsal = await start({ scenario: { turns: [{}] }, scenarios })
    const { data } = await clientOf(rehearsal).models.list()
    expect(data.map(({ id }) => id)).toEqual(['rehearsal/sums', 'rehearsal/tales', 'rehearsal'])
  })

  test('without a scenario are answered with 404 and a list of the others', async () => {
    const rehearsal = await start({ scenarios })
    for (const model of ['rehearsal/poems', 'gpt-5', 'rehearsal/__proto__']) {
      const { status, code, message } = await errorOf(await post(rehearsal, body({ model })))
      expect({ status, code }).toEqual({ status: 404, code: 'model_not_found' })
      expect(message).toBe(`The model '${model}' does not exist. Available: rehearsal/sums, rehearsal/tales.`)
    }
    expect(rehearsal.remaining).toBe(0)
  })
})

describe('the server', () => {
  test('listens on loopback only, on a free port', async () => {
    const [one, two] = [await playing({}), await playing({})]
    expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(one.url).not.toBe(two.url)
  })

  test('refuses a port in use with a typed error', async () => {
    const { url } = await playing({})
    const port = Number(new URL(url).port)
    await expect(startRehearsal({ scenario: { turns: [{}] }, port })).rejects.toMatchObject({
      name: 'RehearsalError',
      code: 'cannot_listen',
      subject: 'port',
    })
  })

  test('can be closed twice', async () => {
    const rehearsal = await playing({ text: 'Hi' })
    await post(rehearsal, body())
    await Promise.all([rehearsal.close(), rehearsal.close()])
    await rehearsal.close()
    await expect(post(rehearsal)).rejects.toThrow()
  })
})
