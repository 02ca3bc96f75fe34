/** A step of a response: bytes, time, or its end. */
export type Act = string | Uint8Array | { waitMs: number } | typeof cut | typeof hang

export const cut = Symbol('the connection breaks')
export const hang = Symbol('nothing comes any more')

/** A provider's response, scripted before it is sent. */
export interface Script {
  /** Before the headers. */
  before?: Act[]
  status?: number
  headers?: Record<string, string>
  body: Iterable<Act> | null
  /** The behavior of `fetch` itself, instead of a response. */
  instead?: () => Promise<never>
}

export interface Answer {
  text?: string
  reasoning?: string
  calls?: readonly { id?: unknown; name?: unknown; arguments?: unknown }[]
  finish?: unknown
  usage?: unknown
}

/** A well-formed answer, streamed or not. */
export function answered(answer: Answer, stream: boolean): Script {
  return stream ? streamed(...chunksOf(answer), 'data: [DONE]\n\n') : json(completion(answer))
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Script {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: [JSON.stringify(value)],
  }
}

export function streamed(...acts: Act[]): Script {
  return { headers: { 'content-type': 'text/event-stream' }, body: acts }
}

export function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

export function delta(fields: unknown, finish: unknown = null): string {
  return event({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'chaos-1',
    choices: [{ index: 0, delta: fields, finish_reason: finish }],
  })
}

export function chunksOf({ text = '', reasoning, calls = [], finish, usage = someUsage }: Answer): string[] {
  const end = finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  return [
    delta({ role: 'assistant', content: '' }),
    ...(reasoning === undefined ? [] : [delta({ reasoning_content: reasoning })]),
    ...piecesOf(text).map((content) => delta({ content })),
    ...calls.flatMap(({ id, name, arguments: input }, index) => [
      delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      delta({ tool_calls: [{ index, function: { arguments: input } }] }),
    ]),
    delta({}, end),
    event({ id: 'c', object: 'chat.completion.chunk', choices: [], usage }),
  ]
}

export function completion({ text, reasoning, calls = [], finish, usage = someUsage }: Answer): unknown {
  const tool_calls = calls.map(({ id, name, arguments: input }) => ({
    id,
    type: 'function',
    function: { name, arguments: input },
  }))
  return {
    id: 'c',
    object: 'chat.completion',
    created: 0,
    model: 'chaos-1',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text ?? null,
          ...(reasoning !== undefined && { reasoning_content: reasoning }),
          ...(calls.length > 0 && { tool_calls }),
        },
        finish_reason: finish ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
      },
    ],
    usage,
  }
}

const someUsage = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 }

/** Pieces of six characters, or a hundred pieces. */
function piecesOf(text: string): string[] {
  const letters = Array.from(text)
  const size = Math.max(6, Math.ceil(letters.length / 100))
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, i) =>
    letters.slice(i * size, (i + 1) * size).join(''),
  )
}

/** The start of a stream, then the given continuation. */
export function midway(then: Act): Act[] {
  return [...chunksOf({ text: 'The answer is fo' }).slice(0, 3), then]
}
