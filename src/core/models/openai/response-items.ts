import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type {
  MediaPart,
  AssistantMessage,
  Message,
  ToolCall,
  ToolMessage,
} from '../../../../machines/agent/messages.js'
import type { ModelResponse } from '../../../../machines/agent/model-response.js'
import { asJsonText, asList, asObject, asText, getOrCreate } from '../../base/values.js'
import { describeMediaList, readMediaPart } from '../media.js'
import { toWellFormed } from '../plain-json.js'
import type { WireMessage } from './wire-messages.js'
import { noDelta, type Delta } from './answer-reader.js'
import { isThought, mayHaveTag, ThinkSplitter } from './think-tags.js'

export const messageSeparator = '\n\n'

type Call = Pick<ModelResponse['toolCalls'][number], 'id' | 'function' | 'hosted'>

/** Stores text and images once, in the message, so that its redactions apply here too. Items keep their length. */
export function toKeptItems(items: readonly JsonObject[], answers: readonly JsonObject[]): Json[] {
  return items.map((item): JsonObject => {
    if (isCall(item)) {
      const { name: _name, arguments: _arguments, ...rest } = item
      delete rest[isApprovalRequest(item) ? 'id' : 'call_id']
      return rest
    }
    if (isImageCall(item)) return stripPicture(item)
    if (!answers.includes(item)) return item
    return { ...item, content: asList(item.content).map(stripWords) }
  })
}

function stripWords(value: Json): Json {
  const part = asObject(value)
  if (part === null) return value
  // `logprobs` is large, and models do not use it.
  const { logprobs: _logprobs, ...rest } = part
  return {
    ...rest,
    ...(typeof part.text === 'string' && { text: part.text.length }),
    ...(typeof part.refusal === 'string' && { refusal: part.refusal.length }),
  }
}

/** Restores the items to send back, or returns null if the message no longer matches them. */
export function restoreItems(
  stored: readonly Json[],
  content: string,
  refusal: string,
  calls: readonly Call[],
  media: readonly MediaPart[],
): JsonObject[] | null {
  // The text of an image-only response describes its images.
  const isPicture = media.length > 0 && content === describeMediaList(media)
  const words = { text: isPicture ? '' : content, refusal }
  const used = { text: 0, refusal: 0 }
  const pending = [...calls]
  const pictures = [...media]
  let isBroken = false
  let isLater = false

  function take(kind: 'text' | 'refusal', length: number): string {
    const at = used[kind]
    used[kind] = at + length
    isBroken ||= used[kind] > words[kind].length
    return words[kind].slice(at, at + length)
  }

  function filled(value: Json): Json {
    const part = asObject(value)
    if (typeof part?.text === 'number') return { ...part, text: take('text', part.text) }
    if (typeof part?.refusal === 'number') return { ...part, refusal: take('refusal', part.refusal) }
    return value
  }

  const items = stored.map((value): JsonObject => {
    const item = asObject(value) ?? {}
    if (item.type === 'function_call') {
      const call = pending.shift()
      isBroken ||= call === undefined || call.hosted !== undefined
      return { ...item, call_id: call?.id ?? '', ...call?.function }
    }
    if (isApprovalRequest(item)) {
      const call = pending.shift()
      isBroken ||= call?.hosted === undefined
      return call === undefined ? item : toApprovalItem(call, item)
    }
    if (isImageCall(item) && typeof item.result === 'number') {
      const whole = restorePicture(item, pictures.shift())
      isBroken ||= whole === null
      return whole ?? item
    }
    if (item.type !== 'message') return item
    if (asList(item.content).some((part) => Number(asObject(part)?.text) > 0)) {
      if (isLater) isBroken ||= take('text', messageSeparator.length) !== messageSeparator
      isLater = true
    }
    return { ...item, content: asList(item.content).map(filled) }
  })
  const isWhole = used.text === words.text.length && used.refusal === refusal.length && pending.length === 0
  return isWhole && !isBroken ? items : null
}

export function readWords(item: JsonObject, kind: 'text' | 'refusal'): string {
  return asList(item.content)
    .map((part) => asText(asObject(part)?.[kind]))
    .join('')
}

export const isImageCall = ({ type }: JsonObject): boolean => type === 'image_generation_call'

export function readPictures(items: readonly JsonObject[]): MediaPart[] {
  return items.filter(isImageCall).flatMap((item) => readPicture(item) ?? [])
}

/** Replaces the image with the length of its base64, because the message contains the image in `media`. */
function stripPicture(item: JsonObject): JsonObject {
  // The provider rejects other fields in items that are sent back.
  const { id = '', type = '', status = 'completed' } = item
  const hasPicture = readPicture(item) !== null
  return { id, type, status, result: hasPicture ? asText(item.result).length : null }
}

function restorePicture(item: JsonObject, picture: MediaPart | undefined): JsonObject | null {
  const url = picture?.type === 'image_url' ? picture.image_url.url : ''
  const result = url.slice(url.indexOf(',') + 1)
  return result.length === item.result ? { ...item, result } : null
}

/** Null if there is no image, or if it is unreadable. */
function readPicture({ result, output_format: format }: JsonObject): MediaPart | null {
  const mediaType = asText(format) === '' ? {} : { mediaType: `image/${asText(format)}` }
  return readMediaPart({ type: 'image', image: asText(result), ...mediaType })
}

/** Whether the provider sent an item before it calls a tool on an MCP server. */
export const isApprovalRequest = ({ type }: Readonly<Record<string, unknown>>): boolean =>
  type === 'mcp_approval_request'

/** Names of hosted calls contain a dot, which the names of an agent's tools cannot contain. */
export function readCalls(items: readonly JsonObject[], from: string): ToolCall[] {
  return items.flatMap((item): ToolCall[] => {
    const called = { name: asText(item.name), arguments: readItemArguments(item).trim() || '{}' }
    if (item.type === 'function_call')
      return [{ id: asText(item.call_id) || asText(item.id), type: 'function', function: called }]
    if (!isApprovalRequest(item)) return []
    const server = asText(item.server_label)
    const hosted = { ...called, name: `${server || 'mcp'}.${called.name}` }
    return [{ id: asText(item.id), type: 'function', function: hosted, hosted: { from, server } }]
  })
}

/** Returns '' for an item that is not a call. */
export function readItemArguments(item: JsonObject): string {
  return isCall(item) ? asJsonText(item.arguments) : ''
}

export function isCall(item: JsonObject): boolean {
  return item.type === 'function_call' || isApprovalRequest(item)
}

export function toApprovalItem(
  call: Pick<ToolCall, 'id' | 'function' | 'hosted'>,
  rest: JsonObject = {},
): JsonObject {
  const { id, function: called, hosted } = call
  const { name, arguments: text } = called
  const server = hosted?.server ?? ''
  const prefix = `${server || 'mcp'}.`
  return {
    server_label: server,
    ...rest,
    type: 'mcp_approval_request',
    id,
    name: name.startsWith(prefix) ? name.slice(prefix.length) : name,
    arguments: text,
  }
}

/** The calls that this provider requested approval for. */
export function listHostedCalls(message: AssistantMessage, from: string): ToolCall[] {
  return (message.tool_calls ?? []).filter(({ hosted }) => hosted?.from === from)
}

/** Approves the call only if a person explicitly approved it. */
export function toApprovalAnswer({ tool_call_id: id, content, data }: ToolMessage): WireMessage {
  const approve = data?.['approved'] === true
  const answer = { type: 'mcp_approval_response', approval_request_id: id, approve }
  return { role: 'tool', items: [approve ? answer : { ...answer, reason: toWellFormed(content) }] }
}

/** Recognizes results that answer approval requests of this provider. Call it for each message in order. */
export function createAnswerFilter(from: string): (message: Message) => message is ToolMessage {
  let pending: readonly ToolCall[] = []
  return (message): message is ToolMessage => {
    if (message.role === 'assistant') pending = listHostedCalls(message, from)
    return message.role === 'tool' && pending.some(({ id }) => id === message.tool_call_id)
  }
}

const readThought = ({ text, thinking }: JsonObject): string => asText(text) || asText(thinking)

/** Separates thoughts from a message: reasoning parts, and text inside tags such as `<think>`. */
export function splitMessage(message: JsonObject): { message: JsonObject; thoughts: string[] } {
  const parts = asList(message.content).map((part) => asObject(part) ?? {})
  if (!parts.some((part) => isThought(part) || mayHaveTag(asText(part.text))))
    return { message, thoughts: [] }
  const thoughts = parts.filter(isThought).map(readThought)
  const splitter = new ThinkSplitter()
  let tagged = ''
  const words = parts.filter((part) => !isThought(part))
  const last = words.findLastIndex(({ text }) => typeof text === 'string')
  const content = words.map((part, i) => {
    if (typeof part.text !== 'string') return part
    const added = splitter.push(part.text)
    const end = i === last ? splitter.flush() : noDelta
    tagged += added.reasoning + end.reasoning
    return { ...part, text: added.text + end.text }
  })
  return {
    message: { ...message, content },
    thoughts: [...thoughts, tagged].filter((thought) => thought !== ''),
  }
}

export interface StreamedItem {
  at: number
  item: JsonObject
  isDone: boolean
}

type PieceKind = 'text' | 'reasoning' | 'refusal' | 'arguments'

/** A part of an item. It is streamed in pieces and may then be sent as a whole. */
interface Piece {
  name: string
  text: string
  isDone: boolean
}

interface ItemDraft extends StreamedItem {
  pieces: Map<string, Piece>
  received: Map<string, { text: string; part: number }>
  callIndex: number | undefined
  readonly think: ThinkSplitter
}

const argumentsName = 'response.function_call_arguments'

/** Event types (without suffix) and the text that they carry. */
const pieceKinds: Readonly<Record<string, { kind: PieceKind; whole: string; index: string }>> = {
  'response.output_text': { kind: 'text', whole: 'text', index: 'content_index' },
  'response.refusal': { kind: 'refusal', whole: 'refusal', index: 'content_index' },
  'response.reasoning_text': { kind: 'reasoning', whole: 'text', index: 'content_index' },
  'response.reasoning_summary_text': { kind: 'reasoning', whole: 'text', index: 'summary_index' },
  [argumentsName]: { kind: 'arguments', whole: 'arguments', index: '' },
}

/** Identifies items by `output_index`, because some servers change ids during the stream (GitHub Copilot). */
export function createOutputItems(reportsCalls: boolean) {
  const drafts = new Map<number, ItemDraft>()
  let latest: ItemDraft | undefined
  let callCount = 0
  const shown = { text: null as string | null, reasoning: null as string | null }

  function draftAt(event: JsonObject): ItemDraft {
    const { output_index: at, item_id: id } = event
    const index = typeof at === 'number' ? at : null
    // Finds an item by its id. Used only for events without an index, because a stream may have thousands of items.
    const byId = (): ItemDraft | undefined =>
      typeof id === 'string' ? [...drafts.values()].find(({ item }) => item.id === id) : undefined
    const known =
      index === null ? (byId() ?? (event.item === undefined ? latest : undefined)) : drafts.get(index)
    if (known !== undefined) return known
    const draft: ItemDraft = {
      at: index ?? Math.max(-1, ...drafts.keys()) + 1,
      item: {},
      isDone: false,
      pieces: new Map(),
      received: new Map(),
      callIndex: undefined,
      think: new ThinkSplitter(),
    }
    drafts.set(draft.at, draft)
    return draft
  }

  function show(draft: ItemDraft, name: string, added: string): Delta {
    const kind = getKind(name)
    if (kind === 'arguments') return reportCall(draft, added)
    if (kind === 'text') return showWords(draft, draft.think.push(added))
    return kind === 'reasoning'
      ? { text: '', reasoning: separate(kind, `${draft.at} ${name}`, added) }
      : noDelta
  }

  function showWords({ at }: ItemDraft, { text, reasoning }: Delta): Delta {
    if (text === '' && reasoning === '') return noDelta
    const place = `${at} words`
    return { text: separate('text', place, text), reasoning: separate('reasoning', place, reasoning) }
  }

  function separate(kind: 'text' | 'reasoning', place: string, added: string): string {
    if (added === '') return ''
    const isNext = shown[kind] !== null && shown[kind] !== place && !added.startsWith(messageSeparator)
    shown[kind] = place
    return (isNext ? messageSeparator : '') + added
  }

  /** Returns the new part of the arguments. The first delta of a call contains all arguments so far. */
  function reportCall(draft: ItemDraft, added: string): Delta {
    const { item, received } = draft
    if (!reportsCalls || item.type !== 'function_call') return noDelta
    if (draft.callIndex !== undefined && added === '') return noDelta
    const isFirst = draft.callIndex === undefined
    const index = (draft.callIndex ??= callCount++)
    const text = isFirst ? (received.get(argumentsName)?.text ?? '') : added
    const id = asText(item.call_id) || asText(item.id)
    return { ...noDelta, calls: [{ index, id, name: asText(item.name), arguments: text }] }
  }

  /** Adds text to a part and returns the new text. Returns '' if the whole text contradicts the pieces. */
  function advance(draft: ItemDraft, name: string, part: number, text: string, isWhole: boolean): Delta {
    const piece = getPiece(draft, name, part, isWhole ? text : null)
    // Comparing each piece would take quadratic time.
    const added = isWhole ? getAdded(text, piece.text) : text
    piece.text = isWhole ? text : piece.text + text
    piece.isDone = isWhole
    if (added === '') return noDelta
    const before = draft.received.get(name)
    const isNext = before !== undefined && before.text !== '' && before.part !== part
    const next = (isNext ? getSeparator(name) : '') + added
    draft.received.set(name, { text: (before?.text ?? '') + next, part })
    return show(draft, name, next)
  }

  /** Compares parts as one text, because items and events may number them differently (Bedrock). */
  function settle(draft: ItemDraft, item: JsonObject): Delta {
    let delta: Delta = noDelta
    for (const [name, texts] of listWholes(item)) {
      for (const [key, piece] of draft.pieces) if (piece.name === name) draft.pieces.delete(key)
      for (const [part, text] of texts) draft.pieces.set(`${name} ${part}`, { name, text, isDone: true })
      const before = draft.received.get(name)?.text ?? ''
      const whole = [...texts.values()].join(getSeparator(name))
      draft.received.set(name, { text: whole, part: Math.max(...texts.keys()) })
      if (whole.startsWith(before)) delta = joinDeltas(delta, show(draft, name, whole.slice(before.length)))
    }
    return delta
  }

  return {
    push(type: string, event: JsonObject): Delta {
      const item = asObject(event.item)
      if (item !== null && (type === 'response.output_item.added' || type === 'response.output_item.done')) {
        const draft = (latest = draftAt(event))
        draft.isDone ||= type === 'response.output_item.done'
        draft.item = typeof item.type === 'string' ? item : { ...draft.item, ...item }
        const shown = settle(draft, item)
        return draft.callIndex === undefined ? joinDeltas(shown, reportCall(draft, '')) : shown
      }
      const [, name = '', end = ''] = /^(.*)\.(delta|done)$/.exec(type) ?? []
      const known = pieceKinds[name]
      if (known === undefined) return noDelta
      const draft = (latest = draftAt(event))
      const part = event[known.index]
      const isWhole = end === 'done'
      const text = asText(event[isWhole ? known.whole : 'delta'])
      if (isWhole && text === '') return noDelta
      return advance(draft, name, typeof part === 'number' ? part : 0, text, isWhole)
    },

    flush(): Delta {
      return [...drafts.values()]
        .map((draft) => showWords(draft, draft.think.flush()))
        .reduce((all, delta) => joinDeltas(all, delta), noDelta)
    },

    result(): StreamedItem[] {
      return [...drafts.values()]
        .toSorted((a, b) => a.at - b.at)
        .map((draft) => ({ at: draft.at, isDone: draft.isDone, item: finishItem(draft) }))
        .filter(({ item: { type } }) => typeof type === 'string')
    },
  }
}

/** Finds the part that an event refers to. The whole text may be numbered differently from its pieces. */
function getPiece({ pieces }: ItemDraft, name: string, part: number, whole: string | null): Piece {
  const continues = (piece: Piece): boolean =>
    whole !== null && piece.name === name && !piece.isDone && whole.startsWith(piece.text)
  const key = `${name} ${part}`
  const known = pieces.get(key) ?? [...pieces.values()].find(continues)
  return known ?? getOrCreate(pieces, key, () => ({ name, text: '', isDone: false }))
}

const getKind = (name: string): PieceKind | undefined => pieceKinds[name]?.kind

const getSeparator = (name: string): string => (getKind(name) === 'reasoning' ? messageSeparator : '')

/** Returns '' if the whole text contradicts the text so far. */
export function getAdded(whole: string, before: string): string {
  return whole.startsWith(before) ? whole.slice(before.length) : ''
}

function listWholes(item: JsonObject): Map<string, Map<number, string>> {
  const wholes = new Map<string, Map<number, string>>()
  const addAll = (list: readonly Json[], partOf: (part: JsonObject) => [string, string]): void => {
    for (const [i, value] of list.entries()) {
      const [name, text] = partOf(asObject(value) ?? {})
      if (text !== '') getOrCreate(wholes, `response.${name}`, () => new Map<number, string>()).set(i, text)
    }
  }
  if (item.type === 'message') {
    addAll(asList(item.content), (part) => {
      if (part.type === 'refusal') return ['refusal', asText(part.refusal)]
      return isThought(part) ? ['reasoning_text', readThought(part)] : ['output_text', asText(part.text)]
    })
  } else if (item.type === 'reasoning') {
    addAll(asList(item.summary), ({ text }) => ['reasoning_summary_text', asText(text)])
    addAll(asList(item.content), ({ text }) => ['reasoning_text', asText(text)])
  } else addAll([item], () => ['function_call_arguments', readItemArguments(item)])
  return wholes
}

/** The final item, with the streamed text if the final event does not repeat it. */
function finishItem(draft: ItemDraft): JsonObject {
  const { isDone, item } = draft
  return isDone && (item.type === 'reasoning' || listWholes(item).size > 0) ? item : addPieces(draft)
}

function addPieces({ item, pieces }: ItemDraft): JsonObject {
  const all = [...pieces.values()]
  const of = (kind: PieceKind) => all.filter(({ name }) => getKind(name) === kind)
  const [call] = of('arguments')
  if (call !== undefined) return { ...item, type: item.type ?? 'function_call', arguments: call.text }
  const thoughts = of('reasoning')
  const words: JsonObject[] = [
    ...of('text').map(({ text }) => ({ type: 'output_text', text, annotations: [] })),
    ...of('refusal').map(({ text }) => ({ type: 'refusal', refusal: text })),
  ]
  const inMessage = thoughts.map(({ text }) => ({ type: 'reasoning_text', text }))
  if (words.length > 0 || (item.type === 'message' && thoughts.length > 0))
    return { ...item, type: 'message', role: 'assistant', content: [...inMessage, ...words] }
  if (thoughts.length === 0) return item
  return { ...item, type: 'reasoning', summary: thoughts.map(({ text }) => ({ type: 'summary_text', text })) }
}

function joinDeltas(a: Delta, b: Delta): Delta {
  if (a === noDelta) return b
  if (b === noDelta) return a
  const calls = [...(a.calls ?? []), ...(b.calls ?? [])]
  return { text: a.text + b.text, reasoning: a.reasoning + b.reasoning, ...(calls.length > 0 && { calls }) }
}
