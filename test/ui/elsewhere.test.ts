import type { UIMessage } from 'ai'
import { SimulatedClock } from 'xstate'
import type { AgentOptions, SessionStore } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { chatHandler } from '../../src/ui/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { passing } from '../support/passing.js'
import { again, latch, type Stage, stage, until } from '../support/play.js'
import { call, calls, text, tool } from '../support/tools.js'
import { Chat, chunksOf, type Handler, protocol, textOf } from './client.js'

const folders: string[] = []
const stores: SessionStore[] = []

afterEach(() => {
  for (const store of stores.splice(0)) void store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

const later = text('Done.')
const at = (path: string, init?: RequestInit): Request =>
  new Request(`http://chat.test/api/chat${path}`, init)

const messageRequest = (id: string, words: string): Request =>
  at('', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: 'c1',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text: words }] }],
    }),
  })

interface Here {
  theatre: Stage
  handler: Handler
  /** Another process with a separate agent, store object and clock over the same folder. */
  there: { handler: Handler; clock: SimulatedClock; store: SessionStore }
  /** The clock of the stores' leases. */
  time: { now: number }
}

async function twoProcesses(
  turns: readonly Turn[],
  options: Partial<AgentOptions> = {},
  asOpened: (store: SessionStore) => SessionStore = (store) => store,
): Promise<Here> {
  const dir = makeFolder()
  folders.push(dir)
  const time = { now: 1_000_000 }
  const open = (): SessionStore => {
    const store = fileStore({ dir, now: () => time.now })
    stores.push(store)
    return store
  }
  const theatre = await stage(turns, { ...options, store: asOpened(open()) })
  const clock = new SimulatedClock()
  const store = asOpened({ ...open() })
  const other = again(theatre, { ...options, store, clock })
  return {
    theatre,
    handler: chatHandler({ agent: theatre.agent, authorize: 'none', protocol }),
    there: { handler: chatHandler({ agent: other, authorize: 'none', protocol }), clock, store },
    time,
  }
}

const wordsOf = (chunks: Awaited<ReturnType<typeof chunksOf>>): unknown[] =>
  chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.delta] : []))

describe('an answer of another process', () => {
  it('is streamed from its start to pages that reconnect or resend the message', async () => {
    const [began, gate] = [latch(), latch()]
    const wait = tool('wait', () => {
      began.open()
      return gate.opened
    })
    const turns = [text('First. ', { toolCalls: [{ name: 'wait', arguments: {} }] }), later]
    const { handler, there, theatre } = await twoProcesses(turns, { tools: [wait] })
    const first = chunksOf(await handler(messageRequest('u1', 'Go.')))
    await began.opened
    const [joined, repeated] = [
      await there.handler(at('/c1/stream')),
      await there.handler(messageRequest('u1', 'Go.')),
    ]
    expect([joined.status, repeated.status]).toEqual([200, 200])
    const page = new Chat('c1', there.handler)
    const resumed = page.resumeStream()
    gate.open()
    const shown = await passing(there.clock, Promise.all([chunksOf(joined), chunksOf(repeated), resumed]))
    expect(wordsOf(shown[0])).toEqual(['First. ', 'Done.'])
    expect(shown[1]).toEqual(shown[0])
    expect(shown[0].at(0)).toEqual((await first).at(0))
    expect(shown[0].at(-1)).toEqual((await first).at(-1))
    const history = (await (await there.handler(at('/c1'))).json()) as UIMessage[]
    expect([page.lastMessage?.id, page.text]).toEqual([history.at(-1)?.id, textOf(history.at(-1))])
    expect([page.errors, wait.inputs.length, theatre.requests.length]).toEqual([[], 1, 2])
    expect((await there.handler(at('/c1/stream'))).status).toBe(204)
  })

  it('is the only answer to a message that both processes received', async () => {
    const { handler, there, theatre } = await twoProcesses([text('One.'), text('Two.')])
    const both = Promise.all([
      handler(messageRequest('u1', 'Go.')),
      there.handler(messageRequest('u1', 'Go.')),
    ])
    const read = both.then((responses) => Promise.all(responses.map((response) => chunksOf(response))))
    const [here, other] = await passing(there.clock, read)
    expect([here, other].map((chunks = []) => wordsOf(chunks).join(''))).toEqual(['One.', 'One.'])
    expect(theatre.requests).toHaveLength(1)
  })

  it('ends at an approval request, which can be answered there', async () => {
    const gate = latch()
    const began = latch()
    const look = tool('look', () => {
      began.open()
      return gate.opened
    })
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, there } = await twoProcesses([call('look'), call('pay'), later], { tools: [look, pay] })
    await handler(messageRequest('u1', 'Go.'))
    await began.opened
    const page = new Chat('c1', there.handler)
    const resumed = page.resumeStream()
    gate.open()
    await passing(there.clock, resumed)
    const part = page.lastMessage?.parts.find(({ type }) => type === 'tool-pay') as unknown
    expect(part).toMatchObject({ state: 'approval-requested' })
    await page.addToolApprovalResponse({
      id: (part as { approval: { id: string } }).approval.id,
      approved: true,
    })
    await until(() => page.status === 'ready' && page.text === 'Done.')
    expect([pay.inputs.length, page.errors]).toEqual([1, []])
  })

  it('continues here for the same page if that process dies', async () => {
    const { handler, there, theatre, time } = await twoProcesses([text('Never', { hang: 2 }), text('Whole.')])
    await handler(messageRequest('u1', 'Go.'))
    await theatre.arrival()
    const joined = chunksOf(await there.handler(at('/c1/stream')))
    there.clock.increment(5000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(theatre.requests).toHaveLength(1)
    // The lease is not renewed.
    time.now += 60_000
    await passing(there.clock, theatre.arrival(2))
    const chunks = await joined
    expect(wordsOf(chunks).join('')).toBe('Whole.')
    expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  })

  it('is no longer polled after the page has disconnected', async () => {
    const { handler, there, theatre } = await twoProcesses([text('Never', { hang: 2 })])
    await handler(messageRequest('u1', 'Go.'))
    await theatre.arrival()
    const joined = await there.handler(at('/c1/stream'))
    const reader = joined.body?.getReader()
    await reader?.read()
    let looks = 0
    const store = { ...there.store }
    there.store.get = (id) => {
      looks += 1
      return store.get(id)
    }
    there.store.read = (...args) => {
      looks += 1
      return store.read(...args)
    }
    const pass = async (): Promise<void> => {
      for (let times = 0; times < 20; times += 1) {
        there.clock.increment(500)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await pass()
    const before = looks
    await reader?.cancel()
    await pass()
    expect([before > 0, looks - before]).toEqual([true, 0])
  })

  it('breaks off if the log becomes unreadable', async () => {
    const { handler, there, theatre } = await twoProcesses([text('Never', { hang: 2 })])
    await handler(messageRequest('u1', 'Go.'))
    await theatre.arrival()
    const joined = chunksOf(await there.handler(at('/c1/stream')))
    there.store.read = () => {
      throw new Error('The disk is gone.')
    }
    await expect(passing(there.clock, joined)).rejects.toThrow('The disk is gone.')
  })
})

describe('simultaneous answers to different requests, sent to two processes', () => {
  const historyOf = async (handler: Handler): Promise<UIMessage[]> =>
    (await (await handler(at('/c1'))).json()) as UIMessage[]

  /** The page's message with its answer to the call at this place. */
  function approving(history: readonly UIMessage[], place: number): Request {
    const last = history.at(-1) as UIMessage
    const approval = last.parts.filter((part) => 'state' in part && part.state === 'approval-requested')
    const parts = last.parts.map((part) =>
      part === approval[place] && 'approval' in part
        ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
        : part,
    )
    const body = JSON.stringify({ id: 'c1', messages: [{ ...last, parts }] })
    return at('', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  }

  const asking = calls([1, 2].map((n) => ['pay', { n }] as const))

  it('are both accepted if the second arrives while the first is applied, and each call runs once', async () => {
    const acquired = [0, 0]
    const isOver = { now: false }
    /** For a limited time if the condition stays false. */
    const soon = async (isTrue: () => boolean): Promise<void> => {
      for (let left = 300; left > 0 && !isTrue(); left -= 1)
        await new Promise((resolve) => setImmediate(resolve))
    }
    // The second process keeps the session until the first one takes it back.
    const hooks = [
      {
        acquire: () => soon(() => (acquired[0] ?? 0) < 2 || (acquired[1] ?? 0) > 0),
        append: async () => undefined,
      },
      { acquire: () => soon(() => (acquired[0] ?? 0) > 0), append: () => soon(() => (acquired[0] ?? 0) > 1) },
    ]
    let opened = 0
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, there, theatre } = await twoProcesses([asking, later], { tools: [pay] }, (store) => {
      const place = opened++
      return {
        ...store,
        acquire: async (...args) => {
          if (isOver.now) acquired[place] = (acquired[place] ?? 0) + 1
          if (isOver.now) await hooks[place]?.acquire()
          return store.acquire(...args)
        },
        append: async (...args) => {
          if (isOver.now) await hooks[place]?.append()
          return store.append(...args)
        },
      }
    })
    const clocks = { increment: (ms: number) => [there.clock, theatre.clock].map((one) => one.increment(ms)) }
    const passed = <Value>(work: Promise<Value>): Promise<Value> => passing(clocks as never, work)
    await passed(handler(messageRequest('u1', 'Go.')).then(chunksOf))
    const history = await passed(historyOf(handler))
    isOver.now = true
    const answered = [handler, there.handler].map(async (send, place) => {
      const response = await send(approving(history, place))
      return { status: response.status, chunks: await chunksOf(response) }
    })
    const shown = await passed(Promise.all(answered))
    expect(shown.map(({ status }) => status)).toEqual([200, 200])
    expect(JSON.stringify(shown)).not.toContain('session_busy')
    expect(shown.some(({ chunks }) => wordsOf(chunks).join('') === 'Done.')).toBe(true)
    expect(textOf((await passed(historyOf(there.handler))).at(-1))).toBe('Done.')
    expect([pay.inputs.length, theatre.requests.length]).toEqual([2, 2])
  })
})
