import { SigtermHandler } from '../../src/cli/command.js'
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect'
import { WebSocket } from 'ws'
import { z } from 'zod'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import { createAgent, defineTool, type Run, type RunOptions } from '../../src/index.js'
import { runCli } from '../../src/cli/cli.js'
import { redactEvent } from '../../src/diagram/index.js'
import { type LocalInspector, startInspector } from '../../src/studio/index.js'
import { SentMessages } from '../../src/studio/inspector.js'
import { loadPeer } from '../../src/core/base/platform.js'
import type { ModelProvider } from '../../src/core/models/provider.js'
import { longTest } from '../support/extent.js'

const secret = `sk-${'a1B2'.repeat(8)}`

const inspectors: LocalInspector[] = []
afterEach(async () => {
  await Promise.all(inspectors.splice(0).map((inspector) => inspector.close()))
})

async function opened(): Promise<LocalInspector> {
  const inspector = await startInspector()
  inspectors.push(inspector)
  return inspector
}

/** Messages to the package's inspection receiver. */
function received(inspector: LocalInspector): StatelyInspectionEvent[] {
  const events: StatelyInspectionEvent[] = []
  createWebSocketReceiver({ server: inspector.socketUrl }).subscribe((event) => {
    events.push(event)
  })
  return events
}

/** One tool call, then an answer. */
const model: ModelProvider = {
  model: 'test',
  provider: 'test',
  request: ({ messages }) =>
    Promise.resolve({
      text: messages.at(-1)?.role === 'tool' ? 'Done.' : '',
      reasoning: '',
      refusal: null,
      toolCalls:
        messages.at(-1)?.role === 'tool'
          ? []
          : [
              {
                id: 'c1',
                type: 'function' as const,
                function: { name: 'look', arguments: JSON.stringify({ token: secret }) },
              },
            ],
      finishReason: messages.at(-1)?.role === 'tool' ? 'stop' : 'tool_calls',
      complete: true,
      usage: null,
      model: 'test',
    }),
}

function run(options: RunOptions): Run {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ token: z.string() }),
    execute: () => `${'long '.repeat(200)}${secret}`,
  })
  return createAgent({ model, tools: [look] }).run(`My key is ${secret}.`, options)
}

describe('a run in the inspector', () => {
  async function wire(): Promise<StatelyInspectionEvent[]> {
    const inspector = await opened()
    const events = received(inspector)
    await inspector.viewed
    await run({ inspect: inspector.inspect }).result
    await inspector.close()
    return events
  }

  it('sends the complete definition of the machine', async () => {
    const [first] = await wire()
    if (first?.type !== '@xstate.actor') throw new Error('The first event is no actor.')
    const definition = JSON.parse(first.definition ?? '{}')
    expect(definition.id).toBe('agent')
    const { always } = definition.states.RUNNING.states.judging.states.accounting
    const cut = always.find(({ guard }: { guard: string }) => guard === 'isTruncatedCall')
    expect(cut.actions.params).toEqual({ reason: 'max_tokens' })
  })

  it('sends every transition, including the last', async () => {
    const events = await wire()
    const [{ sessionId } = { sessionId: '' }] = events
    const values = events.flatMap((event) =>
      event.type === '@xstate.snapshot' && event.sessionId === sessionId
        ? [(event.snapshot as unknown as { value: unknown }).value]
        : [],
    )
    expect(values).toEqual(
      expect.arrayContaining([
        { RUNNING: { asking: 'requesting' } },
        { WAITING_FOR_TOOL: 'executing' },
        'COMPLETED',
      ]),
    )
    expect(values.at(-1)).toBe('COMPLETED')
  })

  it('sends the actors that the machine invokes, as its children', async () => {
    const events = await wire()
    const actors = events.flatMap((event) => (event.type === '@xstate.actor' ? [event] : []))
    const root = actors[0]?.sessionId
    expect(actors.filter(({ parentId }) => parentId === root).map(({ name }) => name)).toEqual([
      'model',
      'tools',
      'model',
    ])
  })

  it('sends no secrets, and only excerpts of contents', async () => {
    const text = JSON.stringify(await wire())
    expect(text).toContain('My key is [redacted]')
    expect(text).not.toContain('a1B2a1B2')
    expect(text).not.toContain('long '.repeat(50))
  })

  it('is sent completely to a viewer that connects after its end', async () => {
    const inspector = await opened()
    await run({ inspect: inspector.inspect }).result
    const events = received(inspector)
    await inspector.viewed
    await inspector.close()
    expect(events[0]?.type).toBe('@xstate.actor')
    expect(events.filter(({ type }) => type === '@xstate.snapshot').at(-1)).toMatchObject({
      snapshot: { status: 'done' },
    })
  })

  it('can be enabled by the agent, or by the run', async () => {
    const ofAgent: string[] = []
    const ofRun: string[] = []
    const agent = createAgent({ model, inspect: ({ type }) => ofAgent.push(type) })
    await agent.run('Hello').result
    const before = ofAgent.length
    await agent.run('Hello', { inspect: { next: ({ type }) => ofRun.push(type) } }).result
    expect(ofAgent[0]).toBe('@xstate.actor')
    expect(ofAgent).toHaveLength(before)
    expect(ofRun).toEqual(ofAgent)
  })

  it('continues if the inspector throws, and warns once', async () => {
    const events: AgentEvent[] = []
    const inspected = run({
      inspect: () => {
        throw new Error('Broken lens.')
      },
    })
    inspected.events$.subscribe((event) => events.push(event))
    await expect(inspected.result).resolves.toMatchObject({ state: 'COMPLETED' })
    const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    expect(warnings.filter((text) => text.includes('Broken lens.'))).toHaveLength(1)
  })

  it.each([[5], ['x'], [{}]])('refuses %j as an inspector, before anything runs', (value) => {
    const inspect = value as never
    expect(() => createAgent({ model, inspect })).toThrow(/inspect must be a function or an observer/)
    expect(() => run({ inspect, session: 's' })).toThrow(/inspect must be a function or an observer/)
  })
})

longTest(
  'statewright run --inspect starts when a page connects, shows the run to its end, and exits',
  async () => {
    const events: StatelyInspectionEvent[] = []
    const stderr = new PassThrough()
    stderr.on('data', (text: Buffer) => {
      const server = /http:\S+/.exec(text.toString())?.[0].replace('http', 'ws')
      if (server === undefined) return
      createWebSocketReceiver({ server }).subscribe((event) => {
        events.push(event)
      })
    })
    const stdin = new PassThrough()
    stdin.end()
    const args = ['run', '--rehearsal', '--inspect', '--json', 'Begin.']
    const io = {
      stdin,
      stdout: new PassThrough(),
      stderr,
      env: {},
      cwd: '.',
      signal: new AbortController().signal,
      sigterm: new SigtermHandler(),
      dataFolder: () => Promise.resolve(null),
    }
    expect(await runCli(args, io)).toBe(0)
    expect(events[0]?.type).toBe('@xstate.actor')
    expect(JSON.stringify(events)).toContain('"value":"COMPLETED"')
  },
)

describe('the page and its socket', () => {
  const outcome = (url: string, origin?: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = new WebSocket(url, origin === undefined ? {} : { origin })
      socket.on('open', () => {
        socket.close()
        resolve('open')
      })
      socket.on('unexpected-response', (_, { statusCode }) => {
        resolve(String(statusCode))
      })
      socket.on('error', () => {
        resolve('error')
      })
    })

  it('listen only on 127.0.0.1', async () => {
    const { url } = await opened()
    expect(new URL(url).hostname).toBe('127.0.0.1')
    const refused = await new Promise((resolve) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.2', () => {
        resolve(false)
        socket.destroy()
      })
      socket.on('error', () => {
        resolve(true)
      })
    })
    expect(refused).toBe(true)
  })

  it('are closed to a page without the token', async () => {
    const { url, socketUrl } = await opened()
    for (const path of ['/', '/?token=', '/?token=wrong', `/other${new URL(url).search}`]) {
      expect((await fetch(new URL(path, url))).status).toBe(403)
      expect(await outcome(new URL(path, socketUrl).href)).toBe('403')
    }
    expect(await outcome(socketUrl)).toBe('open')
  })

  it('are closed to other pages, even with the token', async () => {
    const { url, socketUrl } = await opened()
    expect(await outcome(socketUrl, 'https://stately.ai')).toBe('403')
    expect(await outcome(socketUrl, new URL(url).origin)).toBe('open')
  })

  it('show the inspector in a frame, and reveal their address to no server', async () => {
    const { url, socketUrl } = await opened()
    const page = await fetch(url)
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    const html = await page.text()
    expect(html).toContain('src="https://stately.ai/inspect"')
    expect(html).toContain(JSON.stringify(socketUrl))
    const [nonce] = /(?<=nonce=")[^"]+/.exec(html) ?? ['none']
    expect(page.headers.get('content-security-policy')).toContain(`'nonce-${nonce}'`)
  })

  it('are gone after close(), which can be called twice and waits for no silent viewer', async () => {
    const inspector = await opened()
    const viewer = new WebSocket(inspector.socketUrl)
    await inspector.viewed
    await Promise.all([inspector.close(), inspector.close()])
    expect(await outcome(inspector.socketUrl)).toBe('error')
    viewer.terminate()
  })

  it('report a port that is in use', async () => {
    const { url } = await opened()
    await expect(startInspector({ port: Number(new URL(url).port) })).rejects.toMatchObject({
      code: 'cannot_listen',
      message: expect.stringContaining('Choose another port'),
    })
  })
})

test('keep the first messages, whatever is dropped later', () => {
  const sent = new SentMessages()
  for (const text of ['machine', ...Array.from('abcdef', (letter) => letter.repeat(4_000_000))])
    sent.add(text)
  expect(sent.messages.map((text) => text.slice(0, 7))).toEqual(['machine', 'ddddddd', 'eeeeeee', 'fffffff'])
})

describe('redact()', () => {
  const shown = (value: unknown): unknown =>
    (redactEvent({ type: '@xstate.event', event: value }) as { event: unknown }).event

  it('truncates texts and lists, with a note', () => {
    expect(shown({ text: 'x'.repeat(1000) })).toEqual({ text: `${'x'.repeat(199)}…` })
    expect(shown(Array.from({ length: 30 }, (_, i) => i))).toEqual([
      '… 11 earlier',
      ...Array.from({ length: 19 }, (_, i) => i + 11),
    ])
    expect(redactEvent({ event: ['abc', 'def'] }, { maxText: 2, maxItems: 1 })).toEqual({
      event: ['… 2 earlier'],
    })
  })

  it('hides values under the names of secrets, but not numbers of tokens', () => {
    expect(
      shown({
        apiKey: 'abc',
        'x-api-key': 'abc',
        accessToken: 'abc',
        password: 'abc',
        credentials: { a: 1 },
        inputTokens: 5,
        tokenBudget: 7,
      }),
    ).toEqual({
      apiKey: '[redacted]',
      'x-api-key': '[redacted]',
      accessToken: '[redacted]',
      password: '[redacted]',
      credentials: '[redacted]',
      inputTokens: 5,
      tokenBudget: 7,
    })
  })

  it('returns plain JSON for any value, and is idempotent', () => {
    const cyclic: Record<string, unknown> = {
      big: 1n,
      fn: function namedHere() {},
      bytes: new Uint8Array(3),
      error: new Error('Oh.'),
    }
    cyclic.self = cyclic
    const event = redactEvent({ type: 't', sessionId: 'x:1', event: cyclic, snapshot: { context: secret } })
    expect(JSON.stringify(event)).not.toContain(secret)
    expect(event).toMatchObject({
      event: {
        big: '1',
        fn: { type: 'namedHere' },
        bytes: '3 bytes',
        error: { name: 'Error', message: 'Oh.' },
      },
    })
    expect(redactEvent(event)).toEqual(event)
    expect(JSON.parse(JSON.stringify(event))).toEqual(event)
  })

  it('never throws for objects in the context of an app', () => {
    const nasty = {
      get value(): never {
        throw new Error('No.')
      },
    }
    expect(shown(nasty)).toBe('[unreadable]')
    expect(redactEvent({ definition: 'not JSON' })).toEqual({ definition: '[unreadable]' })
  })

  it('keeps the definition complete except for its context', () => {
    const definition = JSON.stringify({ id: 'm', context: { apiKey: secret }, description: 'x'.repeat(500) })
    const { definition: text } = redactEvent({ definition })
    expect(JSON.parse(text)).toEqual({
      id: 'm',
      context: { apiKey: '[redacted]' },
      description: 'x'.repeat(500),
    })
  })
})

test('a missing optional package is named with the command that installs it', async () => {
  await expect(loadPeer('no-such-package-of-ours', 'This test')).rejects.toMatchObject({
    code: 'missing_package',
    message:
      'This test needs the package no-such-package-of-ours, which is not installed. Run: npm install no-such-package-of-ours',
  })
})
