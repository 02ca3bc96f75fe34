import { listCalls, countUsage, isUnfinished, splitText } from './chat-api.js'
import type { ChatRequest } from './chat-request.js'
import type { TurnEncoder, Envelope } from './planned-response.js'
import type { Turn } from './turn-schema.js'

interface Item {
  id: string
  type: string
  [key: string]: unknown
}

export function createResponsesEncoder(
  turn: Turn,
  request: ChatRequest,
  envelope: Envelope,
): Pick<TurnEncoder, 'encodeBody' | 'encodeEvents'> {
  return {
    encodeBody: () => toDocument(turn, request, envelope),
    encodeEvents: (stop) =>
      encodeEvents(turn, request, envelope, stop).map(
        (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
      ),
  }
}

interface Event {
  type: string
  [key: string]: unknown
}

function toDocument(turn: Turn, request: ChatRequest, envelope: Envelope) {
  return {
    ...createShell(turn, envelope),
    output: toItems(turn, request, envelope),
    usage: toUsage(turn, request),
  }
}

function encodeEvents(
  turn: Turn,
  request: ChatRequest,
  envelope: Envelope,
  stop: number | undefined,
): Event[] {
  const started = {
    ...createShell(turn, envelope),
    status: 'in_progress',
    incomplete_details: null,
    output: [],
    usage: null,
  }
  const deltas = toItems(turn, request, envelope).flatMap((item, at) => toDeltas(item, at, turn))
  const failure = turn.errorInStream
  const whole = toDocument(turn, request, envelope)
  const type = whole.incomplete_details === null ? 'response.completed' : 'response.incomplete'
  const ends = failure === undefined && stop === undefined && !isUnfinished(turn)
  return [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...deltas.slice(0, failure?.after ?? stop).flat(),
    ...(failure ? [{ type: 'error', error: failure.error }] : []),
    ...(ends ? [{ type, response: whole }] : []),
  ]
}

function createShell(turn: Turn, { id, created, model }: Envelope) {
  const { finishReason } = turn
  const reason = finishReason === 'length' ? 'max_output_tokens' : finishReason
  const isCut = reason === 'max_output_tokens' || reason === 'content_filter'
  return {
    id,
    object: 'response',
    created_at: created,
    model,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason } : null,
    error: null,
    store: false,
  }
}

/** Output items: reasoning (encrypted on request), then text, then calls. */
function toItems(turn: Turn, { include }: ChatRequest, envelope: Envelope): Item[] {
  const { reasoning, text, refusal } = turn
  const prefix = envelope.callPrefix.replace(/^call_/, '')
  const isEncrypted = Array.isArray(include) && include.includes('reasoning.encrypted_content')
  const status = 'completed'
  const parts = [
    ...(text === undefined ? [] : [{ type: 'output_text', text, annotations: [] }]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', refusal }]),
  ]
  return [
    ...(reasoning === undefined
      ? []
      : [
          {
            id: `rs_${prefix}1`,
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: reasoning }],
            ...(isEncrypted && { encrypted_content: Buffer.from(`rehearsal ${prefix}`).toString('base64') }),
          },
        ]),
    ...(parts.length === 0
      ? []
      : [{ id: `msg_${prefix}1`, type: 'message', status, role: 'assistant', content: parts }]),
    ...listCalls(turn, envelope).map(({ id, function: called }, i) => {
      const { server: server_label, id: explicitId } = turn.toolCalls?.[i] ?? {}
      return server_label === undefined
        ? { id: `fc_${prefix}${i + 1}`, type: 'function_call', status, call_id: id, ...called }
        : {
            id: explicitId ?? `mcpr_${prefix}${i + 1}`,
            type: 'mcp_approval_request',
            server_label,
            ...called,
          }
    }),
  ]
}

/** A text of an item, as its events identify it. */
interface Part {
  /** `output_text`, `refusal`, `reasoning_summary_text`, `function_call_arguments`. */
  name: string
  /** The field of the final event with the whole text. */
  field: string
  text: string
  place: object
  /** The announced part; arguments have none. */
  part?: { type: string; event: 'content_part' | 'reasoning_summary_part'; whole: object; empty: object }
}

function toTextParts(item: Item, { reasoning = '', text, refusal }: Turn): Part[] {
  if (item.type === 'function_call') {
    const name = 'function_call_arguments'
    return [{ name, field: 'arguments', text: String(item['arguments']), place: {} }]
  }
  if (item.type === 'mcp_approval_request') return []
  if (item.type === 'reasoning') {
    const part = { type: 'summary_text', event: 'reasoning_summary_part' as const }
    return [
      {
        name: 'reasoning_summary_text',
        field: 'text',
        text: reasoning,
        place: { summary_index: 0 },
        part: { ...part, whole: { type: part.type, text: reasoning }, empty: { type: part.type, text: '' } },
      },
    ]
  }
  const contents = [
    { type: 'output_text', field: 'text', text, more: { annotations: [] } },
    { type: 'refusal', field: 'refusal', text: refusal, more: {} },
  ].filter((one): one is typeof one & { text: string } => one.text !== undefined)
  return contents.map(({ type, field, text: words, more }, content_index) => ({
    name: type,
    field,
    text: words,
    place: { content_index },
    part: {
      type,
      event: 'content_part' as const,
      whole: { type, [field]: words, ...more },
      empty: { type, [field]: '', ...more },
    },
  }))
}

/**
 * Groups the events of an item by delta, including the events that start or end it, so a cut stream breaks off
 * between two deltas.
 */
function toDeltas(item: Item, output_index: number, turn: Turn): Event[][] {
  const place = { output_index, item_id: item.id }
  const empty = emptyItems[item.type] ?? {}
  const deltas = toTextParts(item, turn).flatMap(({ name, field, text, place: within, part }) => {
    const here = { ...place, ...within }
    const pieces = splitText(text, turn.chunkSize ?? 16).map((delta) => ({
      type: `response.${name}.delta`,
      ...here,
      delta,
    }))
    const begin = part && { type: `response.${part.event}.added`, ...here, part: part.empty }
    const end = [
      { type: `response.${name}.done`, ...here, [field]: text },
      ...(part ? [{ type: `response.${part.event}.done`, ...here, part: part.whole }] : []),
    ]
    return addFrames(pieces, begin === undefined ? [] : [begin], end)
  })
  const added = {
    type: 'response.output_item.added',
    output_index,
    item: { ...item, ...empty },
  }
  const done = { type: 'response.output_item.done', output_index, item }
  const [first = [], ...rest] = deltas
  return addFrames([first, ...rest], [added], [done])
}

/** Fields that are empty when an item is announced. Approval requests are announced complete. */
const emptyItems: Readonly<Record<string, object>> = {
  message: { content: [], status: 'in_progress' },
  function_call: { arguments: '', status: 'in_progress' },
  reasoning: { summary: [], status: 'in_progress' },
}

function addFrames(groups: readonly (Event | Event[])[], before: Event[], after: Event[]): Event[][] {
  const all = groups.length === 0 ? [[]] : groups.map((group) => [group].flat())
  return all.map((group, i) => [...(i === 0 ? before : []), ...group, ...(i === all.length - 1 ? after : [])])
}

function toUsage(turn: Turn, request: ChatRequest) {
  if (turn.usage === null) return null
  const { input, output, cached, cacheWrite, reasoning } = countUsage(turn, request)
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
