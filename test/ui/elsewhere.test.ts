import type { UIMessage } from 'ai'
import { SimulatedClock } from 'xstate'
import type { AgentOptions, SessionStore } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { chatHandler } from '../../src/ui/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { passing } from '../support/passing.js'
import { again, latch, type Stage, stage, until } from '../support/play.js'
import { call, text, tool } from '../support/tools.js'
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

const said = (id: string, words: string): Request =>
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
  /** Another process: an agent of its own, with a store of its own over the same folder, and its own time. */
  there: { handler: Handler; clock: SimulatedClock; store: SessionStore }
  /** By which the stores know whose time is up. */
  time: { now: number }
}

async function twoProcesses(turns: readonly Turn[], options: Partial<AgentOptions> = {}): Promise<Here> {
  const dir = makeFolder()
  folders.push(dir)
  const time = { now: 1_000_000 }
  const open = (): SessionStore => {
    const store = fileStore({ dir, now: () => time.now })
    stores.push(store)
    return store
  }
  const theatre = await stage(turns, { ...options, store: open() })
  const clock = new SimulatedClock()
  const store = { ...open() }
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

describe('an answer that another process gives', () => {
  it('is shown from its beginning and as it grows, to who comes back and to who says it again', async () => {
    const [began, gate] = [latch(), latch()]
    const wait = tool('wait', () => {
      began.open()
      return gate.opened
    })
    const turns = [text('First. ', { toolCalls: [{ name: 'wait', arguments: {} }] }), later]
    const { handler, there, theatre } = await twoProcesses(turns, { tools: [wait] })
    const first = chunksOf(await handler(said('u1', 'Go.')))
    await began.opened
    const [joined, repeated] = [await there.handler(at('/c1/stream')), await there.handler(said('u1', 'Go.'))]
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

  it('is the one answer to a message that both were told at once', async () => {
    const { handler, there, theatre } = await twoProcesses([text('One.'), text('Two.')])
    const both = Promise.all([handler(said('u1', 'Go.')), there.handler(said('u1', 'Go.'))])
    const read = both.then((responses) => Promise.all(responses.map((response) => chunksOf(response))))
    const [here, other] = await passing(there.clock, read)
    expect([here, other].map((chunks = []) => wordsOf(chunks).join(''))).toEqual(['One.', 'One.'])
    expect(theatre.requests).toHaveLength(1)
  })

  it('ends at the question that it comes to, which may be answered there', async () => {
    const gate = latch()
    const began = latch()
    const look = tool('look', () => {
      began.open()
      return gate.opened
    })
    const pay = tool('pay', () => 'paid', { needsApproval: true })
    const { handler, there } = await twoProcesses([call('look'), call('pay'), later], { tools: [look, pay] })
    await handler(said('u1', 'Go.'))
    await began.opened
    const page = new Chat('c1', there.handler)
    const resumed = page.resumeStream()
    gate.open()
    await passing(there.clock, resumed)
    const asked = page.lastMessage?.parts.find(({ type }) => type === 'tool-pay') as unknown
    expect(asked).toMatchObject({ state: 'approval-requested' })
    await page.addToolApprovalResponse({
      id: (asked as { approval: { id: string } }).approval.id,
      approved: true,
    })
    await until(() => page.status === 'ready' && page.text === 'Done.')
    expect([pay.inputs.length, page.errors]).toEqual([1, []])
  })

  it('goes on here, before the same page, where that process dies', async () => {
    const { handler, there, theatre, time } = await twoProcesses([text('Never', { hang: 2 }), text('Whole.')])
    await handler(said('u1', 'Go.'))
    await theatre.arrival()
    const joined = chunksOf(await there.handler(at('/c1/stream')))
    there.clock.increment(5000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(theatre.requests).toHaveLength(1)
    // Nobody renews its lease.
    time.now += 60_000
    await passing(there.clock, theatre.arrival(2))
    const chunks = await joined
    expect(wordsOf(chunks).join('')).toBe('Whole.')
    expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
  })

  it('is not looked at once the page has gone', async () => {
    const { handler, there, theatre } = await twoProcesses([text('Never', { hang: 2 })])
    await handler(said('u1', 'Go.'))
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
    there.store.read = (...asked) => {
      looks += 1
      return store.read(...asked)
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

  it('breaks off where the log cannot be read any more', async () => {
    const { handler, there, theatre } = await twoProcesses([text('Never', { hang: 2 })])
    await handler(said('u1', 'Go.'))
    await theatre.arrival()
    const joined = chunksOf(await there.handler(at('/c1/stream')))
    there.store.read = () => {
      throw new Error('The disk is gone.')
    }
    await expect(passing(there.clock, joined)).rejects.toThrow('The disk is gone.')
  })
})
