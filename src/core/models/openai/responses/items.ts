import type { Json, JsonObject } from '../../../../../machines/agent/json.js'
import { asList, asObject, asText } from '../../as-json.js'
import { type Delta, noDelta } from '../delta.js'
import { argumentsOf } from './calls.js'
import { betweenMessages } from './kept-items.js'

/** An item of a stream. */
export interface StreamedItem {
  /** Its place in the output. */
  at: number
  item: JsonObject
  /** Whether it has ended. */
  isDone: boolean
}

/** A text that comes in pieces, and then perhaps as a whole. */
interface Piece {
  kind: 'text' | 'reasoning' | 'refusal' | 'arguments'
  text: string
}

/** An output item on its way. */
interface Draft {
  /** Its place in the output. */
  at: number
  /** As it was added, or as it is. */
  item: JsonObject
  isDone: boolean
  /** What came of its parts, by the kind and the number of the part. */
  pieces: Map<string, Piece>
}

/** Which text of an item an event brings, by the event's type without its end. */
const pieceKinds: Readonly<Record<string, { kind: Piece['kind']; whole: string; index: string }>> = {
  'response.output_text': { kind: 'text', whole: 'text', index: 'content_index' },
  'response.refusal': { kind: 'refusal', whole: 'refusal', index: 'content_index' },
  'response.reasoning_text': { kind: 'reasoning', whole: 'text', index: 'content_index' },
  'response.reasoning_summary_text': { kind: 'reasoning', whole: 'text', index: 'summary_index' },
  'response.function_call_arguments': { kind: 'arguments', whole: 'arguments', index: '' },
}

/**
 * Puts the items of a stream together. They go by their place in the output (`output_index`), never by their ids, which
 * change on the way at some (GitHub Copilot); several can be on their way at once.
 */
export function createOutputItems() {
  const drafts = new Map<number, Draft>()
  let latest: Draft | undefined
  /** What was shown last: two messages, two thoughts are not run together. */
  const shown = { text: null as string | null, reasoning: null as string | null }

  function draftAt(event: JsonObject): Draft {
    const { output_index: at, item_id: id } = event
    const byId = typeof id === 'string' ? [...drafts.values()].find(({ item }) => item.id === id) : undefined
    const index = typeof at === 'number' ? at : null
    const known =
      index === null ? (byId ?? (event.item === undefined ? latest : undefined)) : drafts.get(index)
    if (known !== undefined) return known
    const draft: Draft = {
      at: index ?? Math.max(-1, ...drafts.keys()) + 1,
      item: {},
      isDone: false,
      pieces: new Map(),
    }
    drafts.set(draft.at, draft)
    return draft
  }

  /** The text as it was until now, and what is new of it. Nothing is, where the whole contradicts what was shown. */
  function advance(draft: Draft, key: string, kind: Piece['kind'], next: (before: string) => string): Delta {
    const piece = draft.pieces.get(key) ?? { kind, text: '' }
    draft.pieces.set(key, piece)
    const whole = next(piece.text)
    const added = whole.startsWith(piece.text) ? whole.slice(piece.text.length) : ''
    piece.text = whole
    if (added === '' || (kind !== 'text' && kind !== 'reasoning')) return noDelta
    const place = kind === 'text' ? String(draft.at) : `${draft.at} ${key}`
    const gap = shown[kind] === null || shown[kind] === place ? '' : betweenMessages
    shown[kind] = place
    return { ...noDelta, [kind]: gap + added }
  }

  /** Brings what is shown up to an item as it is. */
  function settle(draft: Draft, item: JsonObject): Delta {
    const deltas = wholesOf(item).map(([key, kind, text]) => advance(draft, key, kind, () => text))
    return deltas.reduce(joined, noDelta)
  }

  return {
    /** An event of an item; returns what it adds to what is shown. */
    push(type: string, event: JsonObject): Delta {
      const item = asObject(event.item)
      if (item !== null && (type === 'response.output_item.added' || type === 'response.output_item.done')) {
        const draft = (latest = draftAt(event))
        draft.isDone ||= type === 'response.output_item.done'
        draft.item = typeof item.type === 'string' ? item : { ...draft.item, ...item }
        return settle(draft, item)
      }
      const [, name = '', end = ''] = /^(.*)\.(delta|done)$/.exec(type) ?? []
      const known = pieceKinds[name]
      if (known === undefined) return noDelta
      const draft = (latest = draftAt(event))
      const part = event[known.index]
      const key = `${name} ${known.index === '' ? '' : typeof part === 'number' ? part : 0}`
      const text = asText(event[end === 'delta' ? 'delta' : known.whole])
      if (end === 'done' && text === '') return noDelta
      return advance(draft, key, known.kind, (before) => (end === 'delta' ? before + text : text))
    },

    /** The items in their order, those that never ended with what came of them. */
    result(): StreamedItem[] {
      return [...drafts.values()]
        .toSorted((a, b) => a.at - b.at)
        .map((draft) => ({ at: draft.at, isDone: draft.isDone, item: settled(draft) }))
        .filter(({ item: { type } }) => typeof type === 'string')
    },
  }
}

/** The texts of an item as it is, by the keys that their pieces would have. */
function wholesOf(item: JsonObject): [key: string, kind: Piece['kind'], text: string][] {
  const texts = (list: Json | undefined, key: (type: string) => [string, Piece['kind'], string] | null) =>
    asList(list).flatMap((value, index): [string, Piece['kind'], string][] => {
      const part = asObject(value)
      const [name, kind, field] = (part && key(asText(part.type))) ?? ['', 'text', '']
      const text = asText(part?.[field])
      return name === '' || text === '' ? [] : [[`response.${name} ${index}`, kind, text]]
    })
  if (item.type === 'message') {
    return texts(item.content, (type) =>
      type === 'refusal' ? ['refusal', 'refusal', 'refusal'] : ['output_text', 'text', 'text'],
    )
  }
  if (item.type === 'reasoning') {
    return [
      ...texts(item.summary, () => ['reasoning_summary_text', 'reasoning', 'text']),
      ...texts(item.content, () => ['reasoning_text', 'reasoning', 'text']),
    ]
  }
  const input = argumentsOf(item)
  return input === '' ? [] : [['response.function_call_arguments ', 'arguments', input]]
}

/** An item as it ended; words and arguments that came in pieces count where its end does not repeat them. */
function settled(draft: Draft): JsonObject {
  const { isDone, item } = draft
  return isDone && (item.type === 'reasoning' || wholesOf(item).length > 0) ? item : withPieces(draft)
}

/** An item with what came of it in pieces. */
function withPieces({ item, pieces }: Draft): JsonObject {
  const said = [...pieces.values()]
  const of = (kind: Piece['kind']) => said.filter((piece) => piece.kind === kind)
  const [call] = of('arguments')
  if (call !== undefined) return { ...item, type: item.type ?? 'function_call', arguments: call.text }
  const words: JsonObject[] = [
    ...of('text').map(({ text }) => ({ type: 'output_text', text, annotations: [] })),
    ...of('refusal').map(({ text }) => ({ type: 'refusal', refusal: text })),
  ]
  if (words.length > 0) return { ...item, type: 'message', role: 'assistant', content: words }
  const thoughts = of('reasoning')
  if (thoughts.length === 0) return item
  return { ...item, type: 'reasoning', summary: thoughts.map(({ text }) => ({ type: 'summary_text', text })) }
}

function joined(a: Delta, b: Delta): Delta {
  return { text: a.text + b.text, reasoning: a.reasoning + b.reasoning }
}
