import type { ChatRequest } from './request.js'
import type { Turn } from './turn.js'

/** What a completion carries besides the turn. */
export interface Envelope {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  /** Prefix of the call ids that the turn leaves open. */
  callPrefix: string
}

/** A stream, without the `[DONE]` that follows. */
export interface Chunks {
  /** The role. */
  opening: object
  deltas: object[]
  /** The finish reason and the usage, as far as the turn and the request want them. */
  end: object[]
}

/** A turn as the body of a response that does not stream. */
export function completionOf(turn: Turn, request: ChatRequest, envelope: Envelope) {
  const { reasoning, refusal = null } = turn
  const calls = callsOf(turn, envelope)
  const message = {
    role: 'assistant',
    content: turn.text ?? (calls.length > 0 || refusal !== null ? null : ''),
    refusal,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const finish_reason = endsUnfinished(turn) ? null : finishReasonOf(turn)
  const usage = usageOf(turn, request)
  return {
    ...head(envelope, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    ...(usage && { usage }),
  }
}

/** A turn as the chunks of a stream. */
export function chunksOf(turn: Turn, request: ChatRequest, envelope: Envelope): Chunks {
  const includeUsage = request.stream_options?.include_usage === true
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...head(envelope, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...(includeUsage && { usage: null }),
  })
  const pieces = (text: string | undefined) => piecesOf(text ?? '', turn.chunkSize ?? 16)
  const deltas: object[] = [
    ...pieces(turn.reasoning).map((piece) => ({ reasoning_content: piece })),
    ...pieces(turn.text).map((piece) => ({ content: piece })),
    ...pieces(turn.refusal).map((piece) => ({ refusal: piece })),
    ...callsOf(turn, envelope).flatMap(({ function: { name, arguments: text }, ...call }, index) => [
      { tool_calls: [{ index, ...call, function: { name, arguments: '' } }] },
      ...pieces(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
  ]
  const usage = usageOf(turn, request)
  const end: object[] = []
  if (!endsUnfinished(turn)) end.push(chunk({}, finishReasonOf(turn)))
  if (usage && includeUsage && turn.endWithout !== 'both') {
    end.push({ ...head(envelope, 'chat.completion.chunk'), choices: [], usage })
  }
  return {
    opening: chunk({ role: 'assistant', content: '' }),
    deltas: deltas.map((delta) => chunk(delta)),
    end,
  }
}

function head({ id, created, model }: Envelope, object: string) {
  return { id, object, created, model, system_fingerprint: 'fp_rehearsal' }
}

/** The calls of a turn, each with an id. */
export function callsOf({ toolCalls = [] }: Turn, { callPrefix }: Pick<Envelope, 'callPrefix'>) {
  return toolCalls.map(({ id, name, arguments: input = {} }, i) => ({
    id: id ?? `${callPrefix}${i + 1}`,
    type: 'function',
    function: { name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
  }))
}

function finishReasonOf({ finishReason, toolCalls = [] }: Turn): string {
  return finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')
}

export function endsUnfinished({ endWithout }: Turn): boolean {
  return endWithout === 'finish' || endWithout === 'both'
}

function usageOf(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = countedUsage(turn, request)
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
    },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

type CountedUsage = Record<'input' | 'output' | 'cached' | 'cacheWrite' | 'reasoning', number>

/** What a turn has used: as it says, or by estimate. */
export function countedUsage(turn: Turn, request: ChatRequest): CountedUsage {
  const { cached = 0, cacheWrite = 0, reasoning = 0, ...rest } = turn.usage ?? estimate(turn, request)
  return { ...rest, cached, cacheWrite, reasoning }
}

function estimate(
  { text, reasoning = '', refusal, toolCalls }: Turn,
  { messages, tools }: ChatRequest,
): NonNullable<Turn['usage']> {
  return {
    input: tokensOf([messages, tools]),
    output: tokensOf([text, reasoning, refusal, toolCalls]),
    reasoning: tokensOf([reasoning]),
  }
}

/** Four characters of JSON a token: crude, but the same everywhere. */
function tokensOf(values: unknown[]): number {
  return Math.ceil((JSON.stringify(values.filter(Boolean)).length - 2) / 4)
}

/** By code points, so that no surrogate pair is torn apart. */
export function piecesOf(text: string, size: number): string[] {
  const points = Array.from(text)
  return Array.from({ length: Math.ceil(points.length / size) }, (_, i) =>
    points.slice(i * size, (i + 1) * size).join(''),
  )
}
