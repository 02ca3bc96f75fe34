import * as z from 'zod'
import {
  type Clock,
  createAgent,
  defineTool,
  memoryStore,
  openaiChat,
  ToolError,
} from '../../../src/index.js'
import { startRehearsal, type Turn, type TurnFunction } from '../../../src/rehearsal/index.js'
import { startStudio, type Studio } from '../../../src/studio/index.js'

type Message = Parameters<TurnFunction>[0]['body']['messages'][number]

/** The model's next output, by its answer count and last input. */
type Script = (answers: number, messages: readonly Message[]) => Turn

/**
 * The user message of each session. Their readers ask, in order: why it stopped, its cost, its failure,
 * what-if.
 */
const prompts = {
  rollout: 'Roll out version 4.2, and tell me when it is healthy.',
  report: 'Write the sales report of October.',
  trips: 'What did the trips of last week cost, in euros?',
  chairs: 'Which supplier is the cheapest for forty chairs?',
} as const

const expenses = [
  ['Lisbon', 'flight', '412.60 EUR'],
  ['Geneva', 'hotel', '380.00 CHF'],
  ['Prague', 'train', '2,310.00 CZK'],
  ['Porto', 'dinner', '96.40 EUR'],
] as const

const quotes: Record<string, number> = { Nord: 2_940, Holm: 2_610, Vela: 3_180 }

const call = (name: string, input: Record<string, unknown>) => ({ name, arguments: input as never })
const textOf = (message: Message | undefined): string =>
  typeof message?.content === 'string' ? message.content : JSON.stringify(message?.content ?? '')
const usage = (input: number, output: number) => ({ usage: { input, output } })

const scripts: Record<string, Script> = {
  [prompts.rollout]: (answers) =>
    answers === 0
      ? { text: 'I roll it out.', toolCalls: [call('roll_out', { version: '4.2' })], ...usage(410, 30) }
      : { toolCalls: [call('check_health', { service: 'shop' })], ...usage(450 + answers * 20, 18) },
  [prompts.report]: (answers) =>
    [
      { text: 'First the outline.', toolCalls: [call('list_tables', {})], ...usage(900, 60) },
      {
        text: 'The sales are in two tables.',
        toolCalls: [call('query_returns', { month: '2026-10' })],
        ...usage(1_250, 60),
      },
      {
        text: 'The returns are few.',
        toolCalls: [call('query_sales', { month: '2026-10' })],
        ...usage(1_390, 40),
      },
      {
        text: 'A chart makes it clear.',
        toolCalls: [call('draw_chart', { rows: 31 })],
        ...usage(9_800, 140),
      },
      { text: 'October brought **48,210 EUR**, 6% more than September.', ...usage(10_400, 320) },
    ][answers] ?? { text: 'That is all.' },
  [prompts.trips]: (answers) => {
    if (answers === 0)
      return {
        text: 'I read the receipts.',
        toolCalls: expenses.map(([trip]) => call('read_receipt', { trip })),
        ...usage(380, 90),
      }
    if (answers === 1)
      return {
        text: 'Two of them are not in euros.',
        toolCalls: [
          call('convert', { amount: 380, from: 'CHF' }),
          call('convert', { amount: 2_310, from: 'CZK' }),
        ],
        ...usage(620, 70),
      }
    if (answers === 2)
      return { text: 'I note the sum.', toolCalls: [call('write_note', { sum: 603.84 })], ...usage(710, 40) }
    return { text: 'All trips together cost 603.84 EUR.', ...usage(760, 20) }
  },
  [prompts.chairs]: (answers, messages) => {
    if (answers === 0)
      return {
        text: 'I ask all three.',
        toolCalls: Object.keys(quotes).map((supplier) => call('get_quote', { supplier, chairs: 40 })),
        ...usage(400, 80),
      }
    const costliest = messages
      .filter(({ role }) => role === 'tool')
      .flatMap((message) => {
        const [, supplier, price] = /(\w+) asks ([\d.]+) EUR/.exec(textOf(message)) ?? []
        return supplier && price ? [{ supplier, price: Number(price) }] : []
      })
      .sort((a, b) => a.price - b.price)
    const [best] = costliest
    return { text: `Take **${best?.supplier}**: ${best?.price} EUR for forty chairs.`, ...usage(560, 30) }
  },
}

export interface QuestionsStage {
  studio: Studio
  close(): Promise<void>
}

/** Rehearses the four sessions and opens a studio over them. */
export async function openQuestionsStage(): Promise<QuestionsStage> {
  // Simulated time passes as each session defines.
  let skewMs = -10 * 60_000
  const clock: Clock = {
    now: () => Date.now() + skewMs,
    elapsed: () => performance.now() + skewMs,
    setTimeout: (done, ms) => setTimeout(done, ms),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  }
  const turn: TurnFunction = ({ body: { messages } }) => {
    skewMs += 1_400
    const first = textOf(messages.find(({ role }) => role === 'user'))
    const answers = messages.filter(({ role }) => role === 'assistant').length
    return scripts[first]?.(answers, messages) ?? { text: 'I do not know.' }
  }
  const rehearsal = await startRehearsal({ scenario: { turns: [turn], onExhausted: 'loop' } })
  const store = memoryStore({ now: () => clock.now() })
  const tool = (name: string, ms: number, isReadOnly: boolean, execute: (input: never) => unknown) =>
    defineTool({
      name,
      description: `${name.replaceAll('_', ' ')}.`,
      input: z.record(z.string(), z.unknown()),
      readOnly: isReadOnly,
      execute: (input) => {
        skewMs += ms
        return execute(input as never)
      },
    })
  const agent = createAgent({
    model: openaiChat({ model: 'gpt-5-mini', baseURL: rehearsal.url, provider: 'openai' }),
    store,
    clock,
    instructions: 'You work in an office. Be brief.',
    tools: [
      tool('roll_out', 5_200, false, () => 'Version 4.2 is being rolled out.'),
      tool('check_health', 900, false, () => '0 of 3 machines answer.'),
      tool('list_tables', 300, true, () => ['sales', 'returns']),
      tool('query_sales', 38_400, true, () => ({ rows: 31, sum: 49_180 })),
      tool('query_returns', 2_100, true, () => ({ rows: 31, sum: 970 })),
      tool('draw_chart', 1_700, false, () => 'chart-2026-10.png'),
      tool('read_receipt', 240, true, ({ trip }: { trip: string }) => {
        const [, what, amount] = expenses.find(([name]) => name === trip) ?? []
        return { trip, what, amount }
      }),
      tool('convert', 310, true, ({ amount, from }: { amount: number; from: string }) => {
        if (from === 'CHF') throw new ToolError('failed', 'There is no rate of CHF for 2026-11-21.')
        return { euros: Number((amount * 0.0411).toFixed(2)) }
      }),
      tool('write_note', 90, false, () => 'Noted.'),
      tool('get_quote', 1_250, true, ({ supplier }: { supplier: string }) => {
        return `${supplier} asks ${quotes[supplier]} EUR.`
      }),
    ],
  })
  for (const [session, words] of Object.entries(prompts)) {
    await agent.run(words, { session }).result
    skewMs += 40_000
  }
  const studio = await startStudio({ store, agent })
  return {
    studio,
    close: async () => {
      await studio.close()
      await rehearsal.close()
    },
  }
}
