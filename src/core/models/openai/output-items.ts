import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import { asList, asObject, asText } from '../../base/values.js'
import { type Delta, noDelta } from './answer-reader.js'
import { readItemArguments, messageSeparator, isThought, readThought } from './response-items.js'
import { ThinkSplitter } from './think-tags.js'

/** An item of a stream. */
export interface StreamedItem {
  /** Its place in the output. */
  at: number
  item: JsonObject
  /** Whether it has ended. */
  isDone: boolean
}

type PieceKind = 'text' | 'reasoning' | 'refusal' | 'arguments'

/** One part of an item: a text that comes in pieces, and then perhaps as a whole. */
interface Piece {
  /** Its event's type without its end: see `pieceKinds`. */
  name: string
  kind: PieceKind
  text: string
  /** Whether it has come as a whole. */
  isDone: boolean
}

/** An output item on its way. */
interface ItemDraft {
  /** Its place in the output. */
  at: number
  /** As it was added, or as it is. */
  item: JsonObject
  isDone: boolean
  /** What came of its parts, by the name and the number of the part. */
  pieces: Map<string, Piece>
  /** By the name of the parts: what was taken in until now, all parts together, and the number of the latest. */
  taken: Map<string, { text: string; part: number }>
  /** The place of its call among the calls that are told; undefined while it is not. */
  callIndex: number | undefined
  /** Takes thoughts in tags out of its words. */
  readonly think: ThinkSplitter
}

const argumentsName = 'response.function_call_arguments'

/** Which text of an item an event brings, by the event's type without its end. */
const pieceKinds: Readonly<Record<string, { kind: PieceKind; whole: string; index: string }>> = {
  'response.output_text': { kind: 'text', whole: 'text', index: 'content_index' },
  'response.refusal': { kind: 'refusal', whole: 'refusal', index: 'content_index' },
  'response.reasoning_text': { kind: 'reasoning', whole: 'text', index: 'content_index' },
  'response.reasoning_summary_text': { kind: 'reasoning', whole: 'text', index: 'summary_index' },
  [argumentsName]: { kind: 'arguments', whole: 'arguments', index: '' },
}

/**
 * Puts the items of a stream together. They go by their place in the output (`output_index`), never by their ids, which
 * change on the way at some (GitHub Copilot); several can be on their way at once.
 */
export function createOutputItems(tellsCalls: boolean) {
  const drafts = new Map<number, ItemDraft>()
  let latest: ItemDraft | undefined
  let toldCalls = 0
  /** What was shown last: two messages, two thoughts are not run together. */
  const shown = { text: null as string | null, reasoning: null as string | null }

  function draftAt(event: JsonObject): ItemDraft {
    const { output_index: at, item_id: id } = event
    const index = typeof at === 'number' ? at : null
    // A stream can have thousands of items, and more events than that.
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
      taken: new Map(),
      callIndex: undefined,
      think: new ThinkSplitter(),
    }
    drafts.set(draft.at, draft)
    return draft
  }

  /** Adds to what is shown; two items, and two parts of a thought, are not run together. */
  function show(draft: ItemDraft, name: string, kind: PieceKind, added: string): Delta {
    if (kind === 'arguments') return tellCall(draft, added)
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

  /** With a separator where it does not continue what was shown last. */
  function separate(kind: 'text' | 'reasoning', place: string, added: string): string {
    if (added === '') return ''
    const isNext = shown[kind] !== null && shown[kind] !== place && !added.startsWith(messageSeparator)
    shown[kind] = place
    return (isNext ? messageSeparator : '') + added
  }

  /** What is new of a call's arguments; all that came so far, with the event that first says whose they are. */
  function tellCall(draft: ItemDraft, added: string): Delta {
    const { item, taken } = draft
    if (!tellsCalls || item.type !== 'function_call') return noDelta
    if (draft.callIndex !== undefined && added === '') return noDelta
    const isFirst = draft.callIndex === undefined
    const index = (draft.callIndex ??= toldCalls++)
    const given = isFirst ? (taken.get(argumentsName)?.text ?? '') : added
    const id = asText(item.call_id) || asText(item.id)
    return { ...noDelta, calls: [{ index, id, name: asText(item.name), arguments: given }] }
  }

  /** A part as it was until now, and what is new of it. Nothing is, where the whole contradicts what was shown. */
  function advance(draft: ItemDraft, name: string, part: number, text: string, isWhole: boolean): Delta {
    const { kind } = pieceKinds[name] as { kind: PieceKind }
    const piece = getPiece(draft, name, kind, part, isWhole ? text : null)
    // Only a whole is compared with what came before it: to compare each piece would take quadratic time.
    const added = isWhole ? getAdded(text, piece.text) : text
    piece.text = isWhole ? text : piece.text + text
    piece.isDone = isWhole
    if (added === '') return noDelta
    const before = draft.taken.get(name)
    const isNext = before !== undefined && before.text !== '' && before.part !== part
    const next = (isNext ? getSeparator(kind) : '') + added
    draft.taken.set(name, { text: (before?.text ?? '') + next, part })
    return show(draft, name, kind, next)
  }

  /**
   * Brings what is shown up to an item as it is. Its parts are compared all together, not by their numbers: an item can
   * number them otherwise than the events before it (Bedrock).
   */
  function settle(draft: ItemDraft, item: JsonObject): Delta {
    let delta: Delta = noDelta
    for (const [name, texts] of listWholes(item)) {
      const { kind } = pieceKinds[name] as { kind: PieceKind }
      for (const [key, piece] of draft.pieces) if (piece.name === name) draft.pieces.delete(key)
      for (const [part, text] of texts)
        draft.pieces.set(`${name} ${part}`, { name, kind, text, isDone: true })
      const before = draft.taken.get(name)?.text ?? ''
      const whole = [...texts.values()].join(getSeparator(kind))
      draft.taken.set(name, { text: whole, part: Math.max(...texts.keys()) })
      if (whole.startsWith(before))
        delta = joinDeltas(delta, show(draft, name, kind, whole.slice(before.length)))
    }
    return delta
  }

  return {
    /** An event of an item; returns what it adds to what is shown. */
    push(type: string, event: JsonObject): Delta {
      const item = asObject(event.item)
      if (item !== null && (type === 'response.output_item.added' || type === 'response.output_item.done')) {
        const draft = (latest = draftAt(event))
        draft.isDone ||= type === 'response.output_item.done'
        draft.item = typeof item.type === 'string' ? item : { ...draft.item, ...item }
        const shown = settle(draft, item)
        return draft.callIndex === undefined ? joinDeltas(shown, tellCall(draft, '')) : shown
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

    /** What was held back as the start of a tag, when nothing more comes. */
    flush(): Delta {
      return [...drafts.values()]
        .map((draft) => showWords(draft, draft.think.flush()))
        .reduce((all, delta) => joinDeltas(all, delta), noDelta)
    },

    /** The items in their order, those that never ended with what came of them. */
    result(): StreamedItem[] {
      return [...drafts.values()]
        .toSorted((a, b) => a.at - b.at)
        .map((draft) => ({ at: draft.at, isDone: draft.isDone, item: finishItem(draft) }))
        .filter(({ item: { type } }) => typeof type === 'string')
    },
  }
}

/** The part of an item that an event speaks of; its whole (`whole`) can be numbered otherwise than its pieces were. */
function getPiece(
  draft: ItemDraft,
  name: string,
  kind: PieceKind,
  part: number,
  whole: string | null,
): Piece {
  const { pieces } = draft
  const key = `${name} ${part}`
  const known =
    pieces.get(key) ??
    [...pieces.values()].find(
      (piece) => whole !== null && piece.name === name && !piece.isDone && whole.startsWith(piece.text),
    )
  if (known !== undefined) return known
  const piece: Piece = { name, kind, text: '', isDone: false }
  pieces.set(key, piece)
  return piece
}

function getSeparator(kind: PieceKind): string {
  return kind === 'reasoning' ? messageSeparator : ''
}

/** What a whole adds to what came before it. Nothing, where it contradicts that. */
function getAdded(whole: string, before: string): string {
  return whole.startsWith(before) ? whole.slice(before.length) : ''
}

/** The texts of an item as it is, by the names and the numbers that their pieces would have. */
function listWholes(item: JsonObject): Map<string, Map<number, string>> {
  const wholes = new Map<string, Map<number, string>>()
  const add = (name: string, part: number, text: string): void => {
    const full = `response.${name}`
    if (text !== '') wholes.set(full, (wholes.get(full) ?? new Map<number, string>()).set(part, text))
  }
  const addAll = (
    list: Json | undefined,
    partOf: (part: JsonObject) => [name: string, text: string],
  ): void => {
    for (const [i, value] of asList(list).entries()) {
      const [name, text] = partOf(asObject(value) ?? {})
      add(name, i, text)
    }
  }
  if (item.type === 'message') {
    addAll(item.content, (part) => {
      if (part.type === 'refusal') return ['refusal', asText(part.refusal)]
      return isThought(part) ? ['reasoning_text', readThought(part)] : ['output_text', asText(part.text)]
    })
  } else if (item.type === 'reasoning') {
    addAll(item.summary, ({ text }) => ['reasoning_summary_text', asText(text)])
    addAll(item.content, ({ text }) => ['reasoning_text', asText(text)])
  } else add('function_call_arguments', 0, readItemArguments(item))
  return wholes
}

/** An item as it ended; words and arguments that came in pieces count where its end does not repeat them. */
function finishItem(draft: ItemDraft): JsonObject {
  const { isDone, item } = draft
  return isDone && (item.type === 'reasoning' || listWholes(item).size > 0) ? item : addPieces(draft)
}

/** An item with what came of it in pieces. */
function addPieces({ item, pieces }: ItemDraft): JsonObject {
  const said = [...pieces.values()]
  const of = (kind: PieceKind) => said.filter((piece) => piece.kind === kind)
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
