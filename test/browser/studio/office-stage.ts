import { z } from 'zod'
import { book } from '../../support/asking.js'
import { createDesk, rehearsedAgent } from '../../studio/rehearsed.js'
import { createBudget } from '../../../src/fleet/index.js'
import { type AgentOptions, defineTool, memoryStore, openaiChat, sleepUntil } from '../../../src/index.js'
import { startRehearsal, type Turn } from '../../../src/rehearsal/index.js'
import { exportSession } from '../../../src/studio/export-session.js'
import { startStudio } from '../../../src/studio/index.js'

const summary = `# Summary of the offsite

The **team** spent *four days* in Lisbon. The costs:

| what | EUR |
| --- | ---: |
| flights | 2,646.00 |
| house | 814.50 |

1. Flights were booked late.
2. The house was fine.

\`\`\`ts
const total = 2646 + 814.5
\`\`\`

> Book earlier next year.

See [the notes](https://example.com/notes) and \`offsite.txt\`.`

/** The number of lookups per step of the longest session. */
const atOnce = 8

/**
 * Sessions for every way in which a run can wait or end, with studios over them. `records` is the approximate
 * length of the longest one.
 */
export async function openOfficeStage({ records = 60 }: { records?: number } = {}) {
  const store = memoryStore()
  const ends: (() => Promise<unknown>)[] = []
  const agentOf = async (turns: readonly Turn[], options: Partial<AgentOptions> = {}) => {
    const { agent, close } = await rehearsedAgent(store, turns, options)
    ends.push(close)
    return agent
  }
  const play = async (
    session: string,
    words: string,
    turns: readonly Turn[],
    options: Partial<AgentOptions> = {},
  ) => {
    const agent = await agentOf(turns, options)
    await agent.run(words, { session, tags: { team: 'office' } }).result
    return agent
  }
  const call = (name: string, input: object = {}) => ({ name, arguments: input as never })

  const nap = defineTool({
    name: 'wait_for_payment',
    description: 'Waits.',
    input: z.object({}),
    execute: () => sleepUntil(Date.UTC(2100, 4, 1, 12)),
  })
  const paid = [{ toolCalls: [call('wait_for_payment')] }, { text: 'It is paid.' }]
  await play('sleeping', 'Send the goods when the payment of the customer in Geneva has come in.', paid, {
    tools: [nap],
  })
  const flight = [
    { text: 'I book X1.', toolCalls: [call('book', { flight: 'X1' })] },
    { text: 'It is booked.' },
  ]
  const asker = await play(
    'elicits',
    'Book me a flight to Lisbon on Friday, with a seat at the window if there is one.',
    flight,
    { tools: [book()] },
  )
  await play('failed', 'Summarise the minutes of the board meeting of last Thursday in three lines.', [
    { status: 401, error: { message: 'Incorrect API key provided.' } },
  ])
  const look = [{ text: 'Let me look.', toolCalls: [call('look_up', { what: 'the harbour' })] }]
  await play('limit', 'Find out everything about the harbour.', look, { limits: { maxSteps: 3 } })
  await play(
    'markdown',
    'Summarise the offsite for the board, with a table of the costs and what we learn from it for next year; it should fit on one page.',
    [{ reasoning: 'The board wants it short.', text: summary }],
  )
  const budget = createBudget({ id: 'tenant-acme', tokens: 2_000, per: 'day', onEmpty: 'wait', store })
  await (await budget.reserve({ tokens: 1_500 })).settle({ tokens: 1_500 })
  await play('poor', 'Which colour has the sea?', [{ text: 'Blue.' }], {
    budgets: [budget],
    sampling: { maxTokens: 1_000 },
  })

  const rehearsal = await startRehearsal({
    turns: [
      { toolCalls: [call('transfer_to_billing')] },
      { text: 'Let me see.', toolCalls: [call('refund', { bill: 'B7' })] },
      { text: 'You have your money back: 84.20 EUR for bill B7, within three days.' },
    ],
  })
  ends.push(() => rehearsal.close())
  const model = openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' })
  const desk = createDesk({ model, store })
  await desk.run('I paid the bill B7 twice. Can I have my money back?', { session: 'handoff' }).result

  const shelves = Array.from({ length: Math.round(records / (atOnce + 1)) }, (_, i) => ({
    text: `**Step ${i + 1}**: I look up what is on \`shelf ${i + 1}\`.`,
    toolCalls: Array.from({ length: atOnce }, (_, at) =>
      call('look_up', { what: `thing ${at + 1} of shelf ${i + 1}` }),
    ),
  }))
  await play(
    'archive',
    'Look up everything that the archive has about the things of the old harbour.',
    [...shelves, { text: 'All is looked up.' }],
    { limits: { maxSteps: null } },
  )

  // A run that is still active during its screenshots.
  const slow = defineTool({
    name: 'count_stock',
    description: 'Counts.',
    input: z.object({}),
    execute: (_, { signal }) =>
      new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('Stopped.'))),
  })
  const counts = [
    { text: 'First the shelves.', toolCalls: [call('look_up', { what: 'shelves' })] },
    { text: 'Now I count.', toolCalls: [call('count_stock')] },
    { text: 'Counted.' },
  ]
  const counter = await agentOf(counts, {
    tools: [
      slow,
      defineTool({
        name: 'look_up',
        description: 'Looks something up.',
        input: z.object({ what: z.string() }),
        execute: () => 'Six of them.',
      }),
    ],
  })
  const run = counter.run('Count what is in stock.', { session: 'running' })
  ends.push(async () => {
    run.cancel()
    await run.result
  })

  const studio = await startStudio({ store, agent: asker, title: 'file:.sessions' })
  studio.attach(run)
  const readOnly = await startStudio({ store })
  const empty = await startStudio({ store: memoryStore(), title: 'file:.sessions' })
  // No editor answers there.
  const stately = await startStudio({ store, stately: { editor: 'http://127.0.0.1:9/embed' } })
  return {
    studio,
    readOnly,
    empty,
    stately,
    exported: (session: string) => exportSession(store, session),
    close: async () => {
      for (const one of [studio, readOnly, empty, stately]) await one.close()
      for (const end of ends.toReversed()) await end()
    },
  }
}
