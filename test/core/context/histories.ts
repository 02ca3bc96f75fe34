import * as fc from 'fast-check'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Fit } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'
import { checkFit } from '../../../src/core/effects/fit-transcript.js'
import { createTokenCounter } from '../../../src/core/context/token-counter.js'
import { drawFit, type FitStrategy } from '../../../src/core/context/strategies.js'
import { fitMessages } from '../../../src/core/context/fit-messages.js'
import type { ModelRequest } from '../../../src/core/models/provider.js'

/** Four characters per token: exact, additive enough, and fast. */
export const tokenizer = { count: (text: string) => Math.ceil(text.length / 4) }
export const counter = createTokenCounter(tokenizer)

type Draft = Message extends infer Each
  ? Each extends Message
    ? Omit<Each, 'id' | 'createdAt'>
    : never
  : never

const words = fc.nat({ max: 400 }).map((length) => 'word '.repeat(length / 5 + 1))

/** A message with calls and all their results. Ids repeat, as with some providers. */
const batch = fc.array(words, { minLength: 1, maxLength: 3 }).map((results): Draft[] => [
  {
    role: 'assistant',
    content: null,
    tool_calls: results.map((_, i) => ({
      id: `call_${i}`,
      type: 'function' as const,
      function: { name: `tool_${i}`, arguments: '{}' },
    })),
  },
  ...results.map((content, i) => ({ role: 'tool' as const, tool_call_id: `call_${i}`, content })),
])
const answer = words.map((content): Draft[] => [{ role: 'assistant', content }])
const texts = fc.oneof(
  { weight: 6, arbitrary: words.map((content): Draft => ({ role: 'user', content })) },
  {
    weight: 1,
    arbitrary: words.map(
      (text): Draft => ({
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        ],
      }),
    ),
  },
)
const steering = words.map((content): Draft[] => [{ role: 'user', content, data: { reason: 'steering' } }])
const goOn = words.map((content): Draft[] => [
  { role: 'assistant', content },
  { role: 'user', content: 'Go on.', internal: true, data: { reason: 'max_tokens_recovery' } },
])
const step = fc.oneof({ weight: 5, arbitrary: batch }, answer, steering, goOn)
const turn = fc
  .tuple(fc.array(texts, { minLength: 1, maxLength: 2 }), fc.array(step, { maxLength: 8 }))
  .map(([opening, steps]) => [...opening, ...steps.flat()])

/** A transcript as the loop writes it, at a point where a request can follow. */
export const histories: fc.Arbitrary<Message[]> = fc
  .tuple(
    fc.array(
      words.map((content): Draft => ({ role: 'system', content })),
      { maxLength: 1 },
    ),
    fc.array(turn, { minLength: 1, maxLength: 5 }),
  )
  .map(([lead, turns]) => stamped([...lead, ...turns.flat()]))

export function stamped(drafts: readonly Draft[]): Message[] {
  return drafts.map((draft, i) => ({ ...draft, id: `m${i + 1}`, createdAt: i * 1_000 }) as Message)
}

export function requestOf(messages: readonly Message[], fit: Fit | null): ModelRequest {
  return {
    instructions: 'You are careful.',
    messages: fitMessages(messages, fit),
    nudges: [],
    tools: [{ name: 'tool_0', description: 'A tool.', parameters: { type: 'object' } }],
    sampling: {},
    extraBody: {},
    stream: false,
  }
}

export function sizeOf(messages: readonly Message[], fit: Fit | null): number {
  return counter.request(requestOf(messages, fit))
}

/** The next fit of a transcript, as the runtime computes it. Undefined when there is none. */
export function nextFit(
  strategy: FitStrategy,
  messages: Message[],
  window: number,
  fit: Fit | null = null,
): Fit | null | undefined {
  const context = { messages, fit, config: { context: { window, strategy: 'compact' } } }
  const finding = checkFit(context as unknown as AgentContext, counter, (fit) => requestOf(messages, fit))
  if (finding.situation === null) return finding.fit
  return drawFit(strategy, finding.situation, (fit) => sizeOf(messages, fit)) ?? undefined
}

/** The prefixes of a transcript after which the loop made a request. */
export function requestPoints(messages: readonly Message[]): Message[][] {
  return messages.flatMap((message, i) => {
    const next = messages[i + 1]
    const isAsked = message.role === 'user' || message.role === 'tool'
    return isAsked && next?.role !== 'tool' ? [messages.slice(0, i + 1)] : []
  })
}
