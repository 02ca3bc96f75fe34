import { createHash } from 'node:crypto'
import type { ChatRequest } from './chat-request.js'
import type { Turn } from './turn-schema.js'

export interface Envelope {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  callPrefix: string
}

export type Answer = ReturnType<typeof createAnswer>

export function createAnswer(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { text, reasoning, refusal, finishReason, toolCalls = [], chunkSize = 16, endWithout } = turn
  return {
    ...envelope,
    request,
    text,
    reasoning,
    refusal,
    finishReason,
    calls: toolCalls.map(({ id, name, arguments: input = {}, server }, i) => ({
      id: id ?? `${envelope.callPrefix}${i + 1}`,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
      server,
      explicitId: id,
    })),
    usage: turn.usage === null ? null : countUsage(turn, request),
    hasFinish: endWithout !== 'finish' && endWithout !== 'both',
    hasDone: endWithout !== 'done' && endWithout !== 'both',
    /** Splits by code points, so surrogate pairs stay together. */
    split: (words = ''): string[] => {
      const points = Array.from(words)
      return Array.from({ length: Math.ceil(points.length / chunkSize) }, (_, i) =>
        points.slice(i * chunkSize, (i + 1) * chunkSize).join(''),
      )
    },
  }
}

function countUsage(turn: Turn, { messages, tools }: ChatRequest) {
  const { text, reasoning: thoughts = '', refusal, toolCalls } = turn
  const counted: NonNullable<Turn['usage']> = turn.usage ?? {
    input: estimateTokens([messages, tools]),
    output: estimateTokens([text, thoughts, refusal, toolCalls]),
    reasoning: estimateTokens([thoughts]),
  }
  const { cached = 0, cacheWrite = 0, reasoning = 0, ...rest } = counted
  return { ...rest, cached, cacheWrite, reasoning }
}

/** Counts four characters of JSON as one token, which is inaccurate but deterministic. */
function estimateTokens(values: unknown[]): number {
  return Math.ceil((JSON.stringify(values.filter(Boolean)).length - 2) / 4)
}

export interface Event {
  type: string
  [key: string]: unknown
}

/** Adds events to the first and the last delta, so that a cut stream breaks off between two deltas. */
export function frame(deltas: readonly Event[][], before: Event[], after: Event[]): Event[][] {
  const [first = [], ...rest] = deltas
  const all = [[...before, ...first], ...rest]
  return [...all.slice(0, -1), [...(all.at(-1) ?? []), ...after]]
}

/** A signature that detects changed content. */
export const sign = (content: string): string =>
  createHash('sha256').update(`rehearsal:${content}`).digest('base64')
