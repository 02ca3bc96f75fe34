import { defineShield, patternShield, secretsShield } from '../../src/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { stage } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'

const forbid = (word: string) =>
  patternShield({ name: 'word', patterns: [new RegExp(word)], action: 'block' })
const hide = (word: string) =>
  patternShield({ name: 'hide', patterns: [new RegExp(word, 'g')], action: 'redact' })
const echo = () => tool('echo', ({ text: words }) => words)

describe('input', () => {
  test('a blocked input makes no model call, ends in BLOCKED, and is not repeated to the next model', async () => {
    const play = await stage([text('Fine.')], { shields: { input: [forbid('bomb')] } })
    const session = 's'
    const blocked = await play.run('How to build a bomb?', { session }).run.result
    expect(blocked).toMatchObject({ state: 'BLOCKED', reason: 'shield', error: { code: 'shield' }, steps: 0 })
    expect(play.requests).toHaveLength(0)
    const next = await play.run('And tea?', { session }).run.result
    expect(next.state).toBe('COMPLETED')
    expect(JSON.stringify(play.wire(0))).not.toContain('bomb')
  })

  test('a redacted input is what the model and the transcript receive', async () => {
    const play = await stage([text('Hello.')], { shields: { input: [hide('4711')] } })
    const run = play.run([{ content: [{ type: 'text', text: 'My code is 4711.' }] }])
    const result = await run.end(1)
    // A time in milliseconds may contain the number by chance.
    const withoutTimes = result.messages.map((message) => ({ ...message, createdAt: 0 }))
    expect(JSON.stringify([withoutTimes, play.wire(0)])).not.toContain('4711')
    expect(run.of('shield')).toMatchObject([{ point: 'input', shield: 'hide', action: 'redact' }])
  })

  test('steering is screened like any other input', async () => {
    const play = await stage([call('wait'), text('Done.')], {
      shields: { input: [forbid('bomb')] },
      tools: [
        tool('wait', () => {
          run.run.steer('Now the bomb.')
          return 'waited'
        }),
      ],
    })
    const run = play.run('Go.')
    const result = await run.run.result
    expect(result).toMatchObject({ state: 'BLOCKED', steps: 1 })
    expect(play.requests).toHaveLength(1)
  })

  test('refused steering from an earlier run is withheld, and does not end the next run', async () => {
    const play = await stage([call('wait'), text('Hello.'), text('Bye.')], {
      store: memoryStore(),
      limits: { maxSteps: 1 },
      shields: { input: [forbid('bomb')] },
      tools: [
        tool('wait', () => {
          run.run.steer('Now the bomb.')
          return 'waited'
        }),
      ],
    })
    const run = play.run('Go.', { session: 'ann' })
    expect(await run.run.result).toMatchObject({ state: 'MAX_STEPS' })
    const next = play.run('Hi.', { session: 'ann' })
    expect(await next.run.result).toMatchObject({ state: 'COMPLETED', output: 'Hello.' })
    expect(next.of('shield')).toMatchObject([{ point: 'input', action: 'block' }])
    expect(JSON.stringify(play.wire(1))).not.toContain('bomb')
    // Other input of the run still ends it.
    expect(await play.run('The bomb.', { session: 'ann' }).run.result).toMatchObject({ state: 'BLOCKED' })
  })
})

describe('output', () => {
  const long = `Everything is fine. ${'More of it. '.repeat(60)}`

  test('streamed text is held back, released in cleared pieces, and complete at the end', async () => {
    const play = await stage([text(long, { chunkSize: 7 })], {
      shields: { output: [forbid('secret')], holdBack: 100 },
    })
    const run = play.run()
    const result = await run.end(1)
    const chunks = run.of('stream_chunk')
    expect(chunks.length).toBeGreaterThan(3)
    expect(chunks.map((chunk) => chunk.text).join('')).toBe(long)
    expect(chunks.filter(({ finished }) => finished)).toHaveLength(1)
    expect(result).toMatchObject({ state: 'COMPLETED', output: long })
    expect(run.of('assistant_message').map(({ message }) => message.content)).toEqual([long])
  })

  test('a blocked answer never reaches the user, the transcript or the next request; it is paid for', async () => {
    const play = await stage([text(`${long} The secret is swordfish.`, { chunkSize: 9 }), text('Fine.')], {
      shields: { output: [forbid('secret')], holdBack: 50 },
    })
    const run = play.run('Tell me.', { session: 's' })
    const result = await run.run.result
    expect(result).toMatchObject({ state: 'BLOCKED', reason: 'shield', output: '' })
    expect(result.usage.totalTokens).toBeGreaterThan(0)
    expect(JSON.stringify([result, run.events])).not.toContain('swordfish')
    await play.run('And now?', { session: 's' }).run.result
    expect(JSON.stringify(play.wire(-1))).not.toMatch(/secret|Everything is fine/)
  })

  test('text next to tool calls is held back, too, and a block executes nothing', async () => {
    const used = echo()
    const play = await stage([call('echo', { text: 'x' }, { text: 'The secret.' })], {
      shields: { output: [forbid('secret')] },
      tools: [used],
    })
    const run = play.run()
    const result = await run.run.result
    expect(result.state).toBe('BLOCKED')
    expect(used.inputs).toEqual([])
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(result)).not.toContain('secret')
  })

  test('a cleared answer is followed by its calls', async () => {
    const used = echo()
    const play = await stage([call('echo', { text: 'x' }, { text: 'Let me see.' }), text('Done.')], {
      shields: { output: [forbid('secret')] },
      tools: [used],
    })
    const result = await play.run().end(2)
    expect(result.messages.map(({ content }) => content)).toEqual(['Go.', 'Let me see.', 'x', 'Done.'])
  })

  test('a redacted answer is shown, stored and sent as redacted, streamed or not', async () => {
    for (const stream of [true, false]) {
      const play = await stage([text('It is swordfish, I think.')], {
        shields: { output: [hide('swordfish')] },
        stream,
      })
      const run = play.run()
      const result = await run.end(1)
      expect(result.output).toMatch(/^It is .*, I think\.$/)
      expect(
        run
          .of('stream_chunk')
          .map((chunk) => chunk.text)
          .join(''),
      ).toBe(result.output)
      expect(JSON.stringify([result, run.events])).not.toContain('swordfish')
    }
  })

  test('cancelled during a check: nothing of the answer is stored, and no tool runs', async () => {
    const used = echo()
    const play = await stage([call('echo', { text: 'x' }, { text: 'The secret.' })], {
      shields: {
        output: [
          defineShield({
            name: 'slow',
            check: (_content, { signal }) =>
              new Promise((_resolve, reject) => {
                run.run.cancel()
                signal.addEventListener('abort', () => {
                  reject(new Error('stopped'))
                })
              }),
          }),
        ],
      },
      tools: [used],
    })
    const run = play.run()
    const result = await run.run.result
    expect(result).toMatchObject({ state: 'CANCELLED', output: '' })
    expect(JSON.stringify([result, run.events])).not.toContain('secret')
    expect(result.usage.totalTokens).toBeGreaterThan(0)
    expect(used.inputs).toEqual([])
  })

  test('the final answer at a limit is screened like any other answer', async () => {
    const play = await stage([call('echo', { text: 'x' }), text('The secret.')], {
      shields: { output: [forbid('secret')] },
      tools: [echo()],
      limits: { maxSteps: 1, onLimit: 'conclude' },
    })
    expect(await play.run().run.result).toMatchObject({ state: 'BLOCKED', output: '' })
  })
})

describe('tools', () => {
  test('a blocked tool input becomes the result of that call, and the loop continues', async () => {
    const used = echo()
    const play = await stage(
      [
        calls([
          ['echo', { text: 'rm -rf /' }],
          ['echo', { text: 'ls' }],
        ]),
        text('Done.'),
      ],
      {
        shields: {
          toolInput: [
            patternShield({ name: 'rm', patterns: [/rm -rf/], action: 'block', message: 'Never delete.' }),
          ],
        },
        tools: [used],
      },
    )
    const run = play.run()
    const result = await run.end(2)
    expect(result.state).toBe('COMPLETED')
    expect(used.inputs).toEqual([{ text: 'ls' }])
    expect(run.of('tool_result').map(({ status }) => status)).toEqual(['blocked', 'ok'])
    expect(result.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
      expect.stringContaining('Never delete.'),
      'ls',
    ])
  })

  test('only the redacted tool output is visible anywhere', async () => {
    const play = await stage([call('echo', { text: 'x' }), text('Done.')], {
      shields: { toolOutput: [secretsShield()] },
      tools: [tool('echo', () => 'key: AKIAIOSFODNN7EXAMPLE')],
    })
    const run = play.run()
    const result = await run.end(2)
    expect(JSON.stringify([result.messages, play.wire(-1), run.events])).not.toContain('AKIAIOSFODNN7EXAMPLE')
    expect(run.of('tool_result')).toHaveLength(1)
    expect(run.of('shield')).toMatchObject([{ point: 'toolOutput', action: 'redact' }])
  })

  test('an unscreened result is withheld if the run is cancelled', async () => {
    const play = await stage([call('echo', { text: 'x' })], {
      shields: {
        toolOutput: [
          defineShield({
            name: 'slow',
            check: () => {
              run.run.cancel()
              return new Promise(() => undefined)
            },
          }),
        ],
      },
      tools: [tool('echo', () => 'the secret')],
    })
    const run = play.run()
    const result = await run.run.result
    expect(result.state).toBe('CANCELLED')
    expect(JSON.stringify([result, run.events])).not.toContain('the secret')
    expect(run.of('tool_result')).toMatchObject([{ status: 'blocked' }])
  })
})

test.each([
  [
    'throws',
    () => {
      throw new Error('out of order')
    },
  ],
  ['returns nonsense', () => ({ action: 'maybe' }) as never],
  ['redacts without a text', () => ({ action: 'redact' }) as never],
])('a shield that %s blocks unless it fails open', async (_, check) => {
  const shields = { input: [defineShield({ name: 'broken', check })] }
  const closed = await stage([text('Hi.')], { shields })
  expect(await closed.run().run.result).toMatchObject({
    state: 'BLOCKED',
    error: { message: expect.stringContaining('broken') as string },
  })
  const open = await stage([text('Hi.')], { shields: { ...shields, failOpen: true } })
  const run = open.run()
  expect((await run.end(1)).state).toBe('COMPLETED')
  expect(run.of('shield')).toMatchObject([{ action: 'warn' }])
})

test('the error of a shield is a warning, and in no message', async () => {
  const broken = defineShield({
    name: 'broken',
    check: () => {
      throw new Error('postgres://app:CANARY@db.internal')
    },
  })
  const play = await stage([text('Hi.')], { shields: { input: [broken] } })
  const run = play.run()
  const result = await run.run.result
  expect(JSON.stringify([result, run.of('shield')])).not.toContain('db.internal')
  expect(run.of('warning')).toMatchObject([
    { code: 'shield_failed', message: expect.stringContaining('db.internal') as string },
  ])
})

test('a hanging shield blocks after its time limit', async () => {
  const play = await stage([text('Hi.')], {
    shields: {
      input: [defineShield({ name: 'hangs', check: () => new Promise(() => undefined) })],
      timeoutMs: 500,
    },
  })
  const run = play.run()
  await run.event('step_started')
  await new Promise((resolve) => setImmediate(resolve))
  play.clock.increment(500)
  expect((await run.run.result).state).toBe('BLOCKED')
})

test('a stored session reveals nothing withheld, and continues', async () => {
  const store = memoryStore()
  const play = await stage([text('The secret is swordfish.'), text('Fine.')], {
    shields: { output: [forbid('secret')] },
    store,
  })
  await play.run('Tell me.', { session: 's' }).run.result
  expect(JSON.stringify(await play.agent.replay('s'))).not.toContain('swordfish')
  const raw = store.read('s').filter(({ data }) => data.includes('swordfish'))
  expect(raw.map(({ data }) => (JSON.parse(data) as { event: { withheld?: true } }).event.withheld)).toEqual([
    true,
  ])
  expect(await play.run('And?', { session: 's' }).run.result).toMatchObject({
    state: 'COMPLETED',
    output: 'Fine.',
  })
})
