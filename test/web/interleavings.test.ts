import fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import { aguiHandler } from '../../src/agui/index.js'
import {
  type Agent,
  createAgent,
  memoryStore,
  type ModelProvider,
  type SessionStore,
} from '../../src/index.js'
import { chatHandler } from '../../src/ui/index.js'
import { distant } from '../support/distant.js'
import { plainAnswer, settled } from '../support/manual-model.js'
import { sampled } from '../support/extent.js'
import { chunksOf, protocol } from '../ui/client.js'

/** Waits for the next number of event loop turns. */
function createWaits(turns: readonly number[]): () => Promise<void> {
  let at = 0
  return async () => {
    const count = turns[at % turns.length] ?? 0
    at += 1
    for (let i = 0; i < count; i += 1) await settled()
  }
}

/** A model that names the question in its answer: `A2.` answers `Q2?`. */
const createModel = (wait: () => Promise<void>): ModelProvider => ({
  provider: 'scripted',
  model: 'scripted-1',
  request: async ({ messages }) => {
    await wait()
    const number = /Q(\d+)\?/.exec(JSON.stringify(messages.findLast(({ role }) => role === 'user')))?.[1]
    return { ...plainAnswer, text: `A${number}.` }
  },
})

type WhenBusy = 'queue' | 'steer'

/** A process with the handlers of a chat. */
function open(store: SessionStore, wait: () => Promise<void>, whenBusy: WhenBusy) {
  const clock = new SimulatedClock()
  const agent = createAgent({ model: createModel(wait), store, clock }) as Agent
  const chat = chatHandler({ agent, authorize: 'none', protocol, whenBusy })
  const agui = aguiHandler({ agent, authorize: 'none', whenBusy })
  const at = (path: string, init?: RequestInit): Request => new Request(`http://chat.test/api/${path}`, init)
  const headers = { 'content-type': 'application/json' }
  const say = (number: number): Promise<Response> => {
    const parts = [{ type: 'text', text: `Q${number}?` }]
    const body = JSON.stringify({ id: 'c', messages: [{ id: `u${number}`, role: 'user', parts }] })
    return chat(at('chat', { method: 'POST', headers, body }))
  }
  const readChat = async () => (await (await chat(at('chat/c'))).json()) as Shown[]
  return {
    clock,
    say,
    readChat,
    readAgui: async () => (await agui(at('agui/c'))).text(),
    stream: (of: string) => chat(at(`chat/c/stream?of=${of}`)),
  }
}

interface Shown {
  id: string
  role: string
  metadata?: { queued?: true }
}

interface Story {
  whenBusy: WhenBusy
  /** The event loop turns of each store request and model answer. */
  store: number[]
  model: number[]
  /** For each message: turns before it is sent, and the process that it is sent to. */
  messages: { after: number; process: number }[]
  /** Turns between two reads. */
  reads: number[]
}

const turns = fc.array(fc.nat({ max: 4 }), { minLength: 3, maxLength: 12 })
const stories: fc.Arbitrary<Story> = fc.record({
  whenBusy: fc.constantFrom('queue', 'steer'),
  store: turns,
  model: turns,
  messages: fc.array(fc.record({ after: fc.nat({ max: 30 }), process: fc.nat({ max: 1 }) }), {
    minLength: 2,
    maxLength: 5,
  }),
  reads: turns,
})

async function play({ whenBusy, store: storeTurns, model, messages, reads }: Story): Promise<void> {
  const near = memoryStore()
  const processes = [0, 1].map((i) =>
    open(distant(near, createWaits(storeTurns.map((one) => one + i))), createWaits(model), whenBusy),
  )
  const first = processes[0] as (typeof processes)[0]
  const accepted = new Set<number>()
  const bodies: Promise<unknown>[] = []
  const story = { isOver: false }
  const send = async (): Promise<void> => {
    for (const [i, { after, process }] of messages.entries()) {
      for (let turn = 0; turn < after; turn += 1) await settled()
      const response = await (processes[i === 0 ? 0 : process] ?? first).say(i)
      expect(response.status).toBe(200)
      accepted.add(i)
      bodies.push(chunksOf(response))
    }
    await Promise.all(bodies)
    story.isOver = true
  }
  const countIn = (text: string, number: number): number => text.split(`Q${number}?`).length - 1
  const read = async (which: number): Promise<void> => {
    const process = processes[which] ?? first
    const wait = createWaits(reads)
    while (!story.isOver) {
      await wait()
      const known = [...accepted]
      const text = await process.readAgui()
      for (const number of known) expect([text, countIn(text, number)]).toEqual([text, 1])
      if (whenBusy === 'steer') continue
      const shown = await process.readChat()
      for (const number of known) expect([shown, countIn(JSON.stringify(shown), number)]).toEqual([shown, 1])
      // The page receives the answer to the last message that it has read.
      const last = shown.findLast(({ metadata }) => !metadata?.queued)
      if (last?.role !== 'user') continue
      const chunks = await chunksOf(await process.stream(last.id))
      const answer = chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.delta] : [])).join('')
      expect([last.id, answer]).toEqual([last.id, `A${last.id.slice(1)}.`])
    }
  }
  const passTime = async (): Promise<void> => {
    for (let step = 0; !story.isOver; step += 1) {
      if (step === 4_000) {
        story.isOver = true
        throw new Error('The chat stands still.')
      }
      await settled()
      for (const { clock } of processes) clock.increment(100)
    }
  }
  await Promise.all([send(), read(0), read(1), passTime()])
  const shown = await first.readChat()
  if (whenBusy === 'queue')
    expect(shown.map(({ role }) => role)).toEqual(messages.flatMap(() => ['user', 'assistant']))
}

it('shows each accepted message exactly once at all times, and streams its answer', async () => {
  await fc.assert(fc.asyncProperty(stories, play), { numRuns: sampled(40), endOnFailure: true })
})
