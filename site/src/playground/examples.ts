import { largestExpense } from '../../../src/rehearsal/largest-expense.js'

/** The playground's examples, with user messages and model scripts. */
export interface Draft {
  input: string
  /** The scenario as JSON text. */
  script: string
  /** The `createAgent` options except the model and the tools, as JSON text. */
  settings: string
}

export interface Example extends Draft {
  name: string
  /** A description of the example. */
  watch: string
}

const write = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
const noSettings = write({})
const { turns } = largestExpense
// The playground sets the pace.
const unhurried = turns.map((turn) => {
  const {
    delayMs: _delay,
    chunkDelayMs: _chunk,
    ...rest
  } = turn as { delayMs?: number; chunkDelayMs?: number }
  return rest
})
const look = { toolCalls: [{ name: 'read_file', arguments: { path: 'laptops.txt' } }] }

export const examples: readonly Example[] = [
  {
    name: 'Find the largest expense',
    watch:
      'The model reads three notes. The provider rejects one request, and one answer is truncated. The loop recovers from both.',
    input: 'What was our largest expense?',
    script: write({ turns: unhurried }),
    settings: noSettings,
  },
  {
    name: 'A call that needs approval',
    watch: 'The model wants to pay an invoice. The run waits until you approve or reject the call.',
    input: 'Pay the invoice for the offsite.',
    script: write({
      turns: [
        {
          text: 'I will look it up.',
          toolCalls: [{ name: 'read_file', arguments: { path: 'offsite.txt' } }],
        },
        { toolCalls: [{ name: 'pay', arguments: { invoice: 'offsite', amount: 3851.7 } }] },
        { text: 'The invoice for the offsite is settled.' },
      ],
    }),
    settings: noSettings,
  },
  {
    name: 'A model that repeats itself',
    watch:
      'The model reads the same file again and again. A guard first nudges it, then blocks the call, and then pauses the run.',
    input: 'How much did the laptops cost?',
    script: write({ turns: [look], onExhausted: 'repeatLast' }),
    settings: noSettings,
  },
  {
    name: 'An unreliable provider',
    watch: 'After a rate limit, a broken stream and an outage, the loop waits and tries again.',
    input: 'Tell me about the year.',
    script: write({
      turns: [
        { status: 429, retryAfterMs: 400 },
        { text: 'It was a good year, and then the', cutAfter: 2 },
        { status: 503 },
        { text: 'It was a good year. We met in Lisbon.' },
      ],
    }),
    settings: noSettings,
  },
  {
    name: 'A token budget',
    watch: 'The settings allow 1,000 tokens. The run ends when they are used up.',
    input: 'Read everything.',
    script: write({
      turns: [
        { ...look, usage: { input: 400, output: 60 } },
        {
          toolCalls: [{ name: 'read_file', arguments: { path: 'offsite.txt' } }],
          usage: { input: 700, output: 80 },
        },
        { text: 'That is all.' },
      ],
    }),
    settings: write({ limits: { tokenBudget: 1000 } }),
  },
  {
    name: 'Invalid arguments',
    watch: 'The model calls a tool with invalid JSON, receives the error and calls the tool again.',
    input: 'What is 19 + 23?',
    script: write({
      turns: [
        { toolCalls: [{ name: 'calculate', arguments: '{"expression": "19 + 23' }] },
        { toolCalls: [{ name: 'calculate', arguments: { expression: '19 + 23' } }] },
        { text: '19 + 23 is 42.', expect: { toolResultsInclude: ['42'] } },
      ],
    }),
    settings: noSettings,
  },
]

/** Sample guards, as settings. */
export const guardPresets: readonly { name: string; settings: string }[] = [
  { name: 'The default guards', settings: noSettings },
  {
    name: 'Halt at the third stale batch',
    settings: write({ guardrails: { progress: { stale: { nudgeAt: 1, blockAt: 2, haltAt: 3 } } } }),
  },
  { name: 'Halt with an error', settings: write({ guardrails: { progress: { onHalt: 'error' } } }) },
  {
    name: 'No progress guard, 12 steps',
    settings: write({ guardrails: { progress: null }, limits: { maxSteps: 12 } }),
  },
  ...['openhuman', 'aar', 'llamaStack', 'strands'].map((preset) => ({
    name: `The rules of ${preset}`,
    settings: write({ preset, ...(preset === 'strands' && { limits: { maxSteps: 12 } }) }),
  })),
]
