import * as z from 'zod'
import { damage } from '../../studio/rehearsed.js'
import {
  createAgent,
  defineTool,
  memoryStore,
  openaiChat,
  type Run,
  type SessionStore,
} from '../../../src/index.js'
import {
  type RehearsalOptions,
  type Scenario,
  startRehearsal,
  type Turn,
} from '../../../src/rehearsal/index.js'
import { exportSession } from '../../../src/studio/export-session.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'

/** Model output that a page must not interpret as HTML. */
export const hostile = '<img src=x onerror="window.hit=1"><script>window.hit=2</script>'

/** Rehearsed sessions in a studio, one for each feature of the page. */
export interface Stage {
  /** A new address each time, because it opens only one browser. */
  readonly url: string
  store: SessionStore
  studio: Studio
  /** The paid amounts. */
  paid: () => readonly number[]
  /** Plays another session. */
  play: (session: string, words: string, turns: readonly Turn[]) => Promise<unknown>
  /** Starts this many sessions at once, `live-0` and so on, attached to the studio. */
  begin: (count: number, turns: readonly Turn[]) => Promise<Run[]>
  /** Takes the store offline and brings it back. */
  setAway: (isAway: boolean) => void
  /** A session as one file. */
  exported: (session: string) => Promise<string>
  close(): Promise<void>
}

const notes: Record<string, string> = {
  'laptops.txt': 'Three laptops at 1,189.00 EUR, a dock for each at 96.50. The shop took 240.00 off.',
  'offsite.txt': 'Lisbon: flights 2,646.00, house 814.50, dinners 391.20. All in EUR.',
  'software.txt': 'Three seats: editor 164.00, design 5 months at 15.00, mail 89.00.',
}

/** Retries, reads in parallel, calls a sub-agent, waits for a person and ends. */
const expenses: readonly Turn[] = [
  {
    text: 'I will look at what is in the folder first.',
    toolCalls: [{ id: 'list', name: 'list_files' }],
    usage: { input: 318, output: 24 },
  },
  { status: 429, retryAfterMs: 1 },
  {
    text: 'Three notes. I will read them all.',
    toolCalls: Object.keys(notes).map((path) => ({ id: path, name: 'read_file', arguments: { path } })),
    usage: { input: 365, output: 71 },
  },
  {
    text: 'Somebody who knows prices should look at the laptops.',
    toolCalls: [
      { id: 'ask', name: 'check_price', arguments: { task: 'Is 1,189.00 EUR usual for such a laptop?' } },
    ],
    usage: { input: 512, output: 40 },
  },
  { text: 'It is: between 1,100 and 1,250.', usage: { input: 96, output: 14 } },
  {
    text: 'The offsite in Lisbon is the largest. I can pay it now.',
    toolCalls: [{ id: 'pay', name: 'pay', arguments: { to: 'Casa Lisboa', amount: 3851.7 } }],
    usage: { input: 700, output: 52 },
  },
  {
    text: 'The largest expense is the team offsite in Lisbon: 3,851.70 EUR. It is paid.',
    usage: { input: 820, output: 30 },
  },
]

/**
 * Fills a store with rehearsed runs and opens a studio over it. `records` is the approximate length of the
 * longest session.
 */
export async function openStage({ records = 60 }: { records?: number } = {}): Promise<Stage> {
  const { store, setAway } = leaving(memoryStore())
  const paid: number[] = []
  const played: { close(): Promise<void> }[] = []
  const tools = [
    defineTool({
      name: 'list_files',
      description: 'Lists the notes.',
      input: z.object({}),
      execute: () => Object.keys(notes),
    }),
    defineTool({
      name: 'read_file',
      description: 'Reads a note.',
      input: z.object({ path: z.string() }),
      execute: ({ path }) => notes[path] ?? `There is no ${path}.`,
    }),
    defineTool({
      name: 'pay',
      description: 'Pays somebody.',
      input: z.object({ to: z.string(), amount: z.number().positive() }),
      needsApproval: true,
      execute: ({ to, amount }) => {
        paid.push(amount)
        return `Paid ${amount} EUR to ${to}.`
      },
    }),
    defineTool({
      name: 'look_up',
      description: 'Looks something up.',
      input: z.object({ word: z.string() }),
      execute: ({ word }) => (word === 'html' ? hostile : `Nothing about ${word}.`),
    }),
  ]
  const agentOf = async (turns: readonly Turn[], options: Pick<RehearsalOptions, 'conversation'> = {}) => {
    const scenario: Scenario = { turns: [...turns] }
    const rehearsal = await startRehearsal({ scenario, ...options })
    played.push(rehearsal)
    const model = openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' })
    const expert = createAgent({ model, store })
    return createAgent({
      model,
      store,
      instructions: 'You keep the books.',
      tools: [
        ...tools,
        expert.asTool({ name: 'check_price', description: 'Asks somebody who knows prices.', maxSteps: 5 }),
      ],
      limits: { maxSteps: 400, tokenBudget: 20_000_000 },
    })
  }
  const play = async (session: string, words: string, turns: readonly Turn[]) => {
    const agent = await agentOf(turns)
    return { agent, result: await agent.run(words, { session }).result }
  }

  const waits = await play(
    'expenses',
    'What was the largest expense of the quarter? Pay it if it is due.',
    expenses,
  )
  const first = await play(
    'paid',
    'What was the largest expense of last year? Pay it if it is due.',
    expenses,
  )
  const [pending] = first.result.pending ?? []
  if (pending) {
    const again = await first.agent.resume('paid')
    again.approve(pending.callId)
    await again.result
  }
  await play('html', 'Look up html.', [
    { toolCalls: [{ id: 'html', name: 'look_up', arguments: { word: 'html' } }] },
    { text: `It says ${hostile}` },
  ])
  await halted(store, played)
  await play('short', 'Which colour is the sky?', [{ text: 'Blue, mostly.' }])
  await damage(store, 'damaged')
  const long: Turn[] = Array.from({ length: Math.round(records / 3) }, (_, at) => ({
    text: `Page ${at + 1}.`,
    toolCalls: [{ id: `c${at}`, name: 'look_up', arguments: { word: `word ${at}` } }],
    usage: { input: 400 + at, output: 12 },
  }))
  await play('long', 'Read the whole book, page by page.', [...long, { text: 'That was all.' }])

  const studio = await startStudio({ store, agent: waits.agent })
  return {
    get url() {
      return studio.url
    },
    store,
    studio,
    paid: () => paid,
    play,
    begin: async (count, turns) => {
      // Each of them plays the turns from the first.
      const conversation = ({ messages }: { messages: readonly unknown[] }) =>
        JSON.stringify(messages.slice(0, 2))
      const agent = await agentOf(turns, { conversation })
      const runs = Array.from({ length: count }, (_, i) =>
        agent.run(`Look up what number ${i} says.`, { session: `live-${i}` }),
      )
      for (const run of runs) studio.attach(run)
      return runs as unknown as Run[]
    },
    setAway,
    exported: (session) => exportSession(store, session),
    close: async () => {
      await studio.close()
      await Promise.all(played.map((each) => each.close()))
    },
  }
}

/** A store that cannot be listed or read while it is offline. */
function leaving(inner: SessionStore): { store: SessionStore; setAway: (isAway: boolean) => void } {
  let isAway = false
  const store = new Proxy(inner, {
    get: (target, key: keyof SessionStore) => {
      if (isAway && (key === 'list' || key === 'read')) throw new Error('The disk is gone.')
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return {
    store,
    setAway: (now) => {
      isAway = now
    },
  }
}

/** A run that a guard halted for repeated calls. */
async function halted(store: SessionStore, played: { close(): Promise<void> }[]): Promise<void> {
  const same: Turn = {
    toolCalls: [{ name: 'ping', arguments: { host: 'db-1' } }],
    usage: { input: 200, output: 15 },
  }
  const rehearsal = await startRehearsal({
    turns: [...Array.from({ length: 24 }, () => same), { text: 'I am stuck.' }],
  })
  played.push(rehearsal)
  const agent = createAgent({
    model: openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' }),
    store,
    tools: [
      defineTool({
        name: 'ping',
        description: 'Asks a machine whether it is there.',
        input: z.object({ host: z.string() }),
        execute: () => 'No answer.',
      }),
    ],
  })
  await agent.run('Is db-1 up?', { session: 'stuck' }).result
}
