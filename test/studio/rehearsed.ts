import { z } from 'zod'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  defineTool,
  handoff,
  openaiChat,
  type SessionStore,
} from '../../src/index.js'
import { systemClock } from '../../src/core/base/clock.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'

/** Sessions of every kind that a studio shows, played by a rehearsal. The tests and `npm run studio` use them. */
export interface Rehearsed {
  agent: Agent
  /** The inputs of the payment tool. */
  paid: number[]
  close: () => Promise<void>
}

const call = (name: string, input: object, id?: string) => ({
  name,
  arguments: input as never,
  ...(id && { id }),
})

/** An agent with a scripted model. The script restarts with each session. */
export async function rehearsedAgent(
  store: SessionStore,
  turns: readonly Turn[],
  options: Partial<AgentOptions> = {},
): Promise<Rehearsed> {
  const rehearsal = await startRehearsal({ scenario: { turns, onExhausted: 'repeatLast' } })
  const model = openaiChat({ model: 'rehearsal', baseURL: rehearsal.url, apiKey: 'none' })
  const paid: number[] = []
  const look = defineTool({
    name: 'look_up',
    description: 'Looks something up.',
    input: z.object({ what: z.string() }),
    readOnly: true,
    execute: ({ what }) => `About ${what}: ${what.length} letters.`,
  })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ amount: z.number().positive().describe('In euros.'), to: z.string() }),
    needsApproval: true,
    execute: ({ amount, to }) => {
      paid.push(amount)
      return { paid: amount, to }
    },
  })
  const stuck = defineTool({
    name: 'poll_nothing',
    description: 'Never brings anything new.',
    input: z.object({}),
    execute: () => 'nothing new',
  })
  const child = createAgent({ model, prices: null }).asTool({
    name: 'research',
    description: 'Finds things out.',
  })
  const agent = createAgent({
    model,
    store,
    prices: { rehearsal: { inputPerMillion: 1, outputPerMillion: 4 } },
    tools: [look, pay, stuck, child],
    retry: { baseDelayMs: 5 },
    ...options,
  })
  return { agent: agent as Agent, paid, close: () => rehearsal.close() }
}

/** A failed attempt, a call, a sub-agent, and a pending approval. */
export const eventful: readonly Turn[] = [
  { status: 503, error: { message: 'Overloaded.' } },
  { text: 'First I look it up.', toolCalls: [call('look_up', { what: 'the invoice' })] },
  { toolCalls: [call('research', { task: 'Who is to be paid?' })] },
  { text: 'Ada is.' },
  { text: 'It is Ada.', toolCalls: [call('pay', { amount: 120, to: 'Ada' }, 'call_pay')] },
  { text: 'Ada has **120 euros** <img src=x onerror="alert(1)">.' },
]

/** Plays a payment that waits for an approval since `askedAt`. Later runs of the agent use the current time. */
export async function askExpiring(
  store: SessionStore,
  session: string,
  { askedAt, ...approvals }: { askedAt: number } & NonNullable<AgentOptions['approvals']>,
): Promise<Rehearsed> {
  let now = (): number => askedAt
  const rehearsed = await rehearsedAgent(
    store,
    [{ text: 'I pay.', toolCalls: [call('pay', { amount: 3, to: 'Ada' }, 'p')] }, { text: 'That is all.' }],
    { approvals, clock: { ...systemClock, elapsed: () => now(), now: () => now() } },
  )
  await rehearsed.agent.run('Pay Ada.', { session }).result
  now = () => systemClock.now()
  return rehearsed
}

/** A guard that halts repeated identical calls. */
const circling: readonly Turn[] = [{ toolCalls: [call('poll_nothing', {})] }]

/** An agent that hands over to a refund agent when the model calls `transfer_to_billing` and `refund`. */
export function createDesk(options: Pick<AgentOptions, 'model' | 'store'>): Agent {
  const refund = defineTool({
    name: 'refund',
    description: 'Pays a bill back.',
    input: z.object({ bill: z.string() }),
    execute: () => 'It is paid back.',
  })
  const billing = createAgent({ model: options.model, tools: [refund] })
  return createAgent({
    ...options,
    tools: [handoff(billing, { name: 'billing', description: 'Knows every bill.' })],
  })
}

/** Plays `steps` calls and then an answer. */
export async function playLong(store: SessionStore, session: string, steps: number): Promise<void> {
  const turns = Array.from(
    { length: steps },
    (_, i): Turn => ({
      text: `Step ${i + 1}.`,
      toolCalls: [call('look_up', { what: `thing number ${i + 1}` })],
    }),
  )
  const { agent, close } = await rehearsedAgent(store, [...turns, { text: 'All is looked up.' }], {
    limits: { maxSteps: null },
  })
  await agent.run('Look up everything.', { session }).result
  await close()
}

export async function play(store: SessionStore, session: string, turns: readonly Turn[], prompt: string) {
  const { agent, close } = await rehearsedAgent(store, turns)
  await agent.run(prompt, { session }).result
  return { agent, close }
}

/**
 * Fills a store with a session of every kind. The returned agent resumes the waiting sessions. It answers every request with the
 * same words.
 */
export async function fillStore(store: SessionStore): Promise<Rehearsed> {
  const short = await play(store, 'short', [{ text: 'Blue, mostly.' }], 'Which colour is the sky?')
  await short.close()
  await playLong(store, 'long', 330)
  const halted = await play(store, 'halted', circling, 'Wait for something new.')
  await halted.close()
  const waiting = await play(store, 'waiting', eventful, 'Pay the invoice of May.')
  const forked = await waiting.agent.fork('waiting', 4, {
    edit: { message: 'm1', content: 'Pay the invoice of June.' },
  })
  await (await waiting.agent.resume(forked)).result
  await waiting.close()
  await damage(store, 'damaged')
  return rehearsedAgent(store, [{ text: 'It is done.' }])
}

/** A log with a manually edited record. */
export async function damage(store: SessionStore, session: string): Promise<void> {
  const records = await store.read('short')
  const broken = records.map((record) =>
    record.seq === 3 ? { ...record, data: record.data.replace('Blue', 'Green') } : record,
  )
  const lease = await store.acquire(session, { holder: 'somebody', ttlMs: 10_000 })
  await store.append(lease, broken)
  await store.release(lease)
}
