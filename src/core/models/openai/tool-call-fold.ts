import { fingerprintCall } from '../../../../guards/lib/fingerprint.js'
import type { Json } from '../../../../machines/agent/json.js'
import type { ToolCall } from '../../../../machines/agent/messages.js'
import type { ToolCallDelta } from '../provider.js'
import { isPlaceholder, listDistinctCalls, type SentCall, withoutPlaceholder } from '../calls.js'
import { JsonScan } from '../json-scan.js'
import { parseJsonOr } from '../../base/json.js'
import { asJsonText, asList, asObject, asText } from '../../base/values.js'

interface CallDraft extends SentCall {
  json: JsonScan
  /** The last piece if each piece repeats the previous ones, otherwise null. */
  snapshot: string | null
  extra: Json | undefined
  /** Whether this call started at the index of another call that is to the same tool and has arguments. */
  repeats: boolean
  isReplaced: boolean
}

/** Folds streamed tool calls. Providers assign pieces to calls in different ways. See `#find`. */
export class ToolCallFold {
  readonly #drafts: CallDraft[] = []
  readonly #byIndex = new Map<number, CallDraft>()
  readonly #byId = new Map<string, CallDraft>()
  #last: CallDraft | undefined

  get length(): number {
    return this.#drafts.length
  }

  /** Adds one `delta.tool_calls` and returns the number of argument characters. Parts are appended to `parts`. */
  push(deltas: unknown, parts?: ToolCallDelta[]): number {
    let length = 0
    for (const delta of asList(deltas)) {
      const entry = asObject(delta)
      if (entry === null) continue
      const call = asObject(entry.function)
      const index = typeof entry.index === 'number' ? entry.index : null
      const id = typeof entry.id === 'number' ? String(entry.id) : asText(entry.id)
      const name = asText(call?.name)
      const piece = asJsonText(call?.arguments)

      let draft = this.#find(index, id)
      const isAgain = draft !== undefined && isSentAgain(draft, index, id, name, piece)
      if (draft === undefined || (!isAgain && isAnotherCall(draft, id, name, piece))) {
        const next = createDraft()
        // Some servers start a call twice at one index.
        if (draft !== undefined && index !== null && draft.name === name) {
          draft.isReplaced = isBlank(draft) || (isPlaceholder(draft.arguments) && piece === '')
          next.repeats = !draft.isReplaced
        }
        draft = next
        this.#drafts.push(draft)
      }
      // Some providers repeat id and name in every piece, so only the first ones count.
      draft.id ||= id
      draft.name ||= name
      const added = isAgain ? '' : piece
      if (added !== '') addPiece(draft, added)
      if (entry.extra_content != null) draft.extra = entry.extra_content
      if (index !== null) this.#byIndex.set(index, draft)
      if (id !== '') this.#byId.set(id, draft)
      this.#last = draft
      length += added.length
      if (parts !== undefined) {
        const at = this.#drafts.lastIndexOf(draft)
        parts.push({ index: at, id: draft.id, name: draft.name, arguments: added })
      }
    }
    return length
  }

  /** The calls in order. Each id is unique within the response, or ''. Arguments are never empty. */
  result(): ToolCall[] {
    const uniqueId = createUniqueIds()
    const started = this.#drafts.filter(
      (draft) =>
        (draft.id !== '' || draft.name !== '' || draft.arguments !== '') &&
        !(draft.isReplaced && isPlaceholder(draft.arguments)) &&
        !(draft.repeats && isBlank(draft)),
    )
    const calls = started.map((draft) => ({ ...draft, arguments: toArguments(draft) }))
    return listDistinctCalls(calls, (call) => call).map((call) => ({
      id: call.id && uniqueId(call.id),
      type: 'function' as const,
      function: { name: call.name, arguments: call.arguments.trim() === '' ? '{}' : call.arguments },
      ...(call.extra !== undefined && { extra_content: call.extra }),
    }))
  }

  /** By index, otherwise by id, otherwise the last call. If calls share an index, the id decides. */
  #find(index: number | null, id: string): CallDraft | undefined {
    const named = this.#byId.get(id)
    if (index === null) return named ?? this.#last
    const last = this.#byIndex.get(index)
    return last === undefined || last.id === id ? last : (named ?? last)
  }
}

function createDraft(): CallDraft {
  const state = { snapshot: '', extra: undefined, repeats: false, isReplaced: false }
  return { id: '', name: '', arguments: '', json: new JsonScan(), ...state }
}

function addPiece(draft: CallDraft, piece: string): void {
  const { snapshot } = draft
  draft.snapshot = snapshot !== null && piece.startsWith(snapshot) ? piece : null
  draft.arguments += piece
  draft.json.read(piece)
}

const isWholeObject = (text: string): boolean => text.startsWith('{') && new JsonScan().read(text).isWhole

function hasWholeArguments({ json, snapshot, arguments: text }: CallDraft): boolean {
  const isCumulative = snapshot !== null && snapshot.length < text.length
  return isCumulative ? isWholeObject(snapshot) : json.isWhole
}

/** Whether the last piece repeats all arguments. */
function isSentAgain(draft: CallDraft, index: number | null, id: string, name: string, piece: string) {
  const isAddressed = index !== null || (id !== '' && id === draft.id)
  if (!isAddressed || !hasWholeArguments(draft) || (name !== '' && name !== draft.name)) return false
  if (draft.arguments === piece) return true
  // A repetition may differ in white space. The limit keeps the work linear.
  if (piece.length * 4 < draft.arguments.length || !isWholeObject(piece)) return false
  return fingerprintCall('', draft.arguments) === fingerprintCall('', piece)
}

/** Whether a named piece starts another call at the same index (Ollama, Gemini). */
function isAnotherCall(draft: CallDraft, id: string, name: string, piece: string): boolean {
  if (name === '') return false
  const isWhole = hasWholeArguments(draft)
  const isOtherName = draft.name !== '' && draft.name !== name
  if (id !== '' && draft.id !== '') {
    // Some servers send a new id with each piece.
    if (draft.id !== id) return isOtherName || isWhole || isBlank(draft) || !canContinue(draft, piece)
    return isWhole && !isPlaceholder(draft.arguments) && isWholeObject(piece)
  }
  if (isOtherName) return true
  const isNamed = draft.name !== '' && (draft.id === '' || !isPlaceholder(draft.arguments))
  return isNamed && isWhole && isWholeObject(piece)
}

/** Whether the JSON can continue with this piece. An object can follow only where a value is expected. */
function canContinue({ json }: CallDraft, piece: string): boolean {
  return !piece.startsWith('{') || json.isText || ':[,'.includes(json.last)
}

const isBlank = ({ json }: CallDraft): boolean => json.last === ''

function toArguments({ arguments: text, snapshot }: CallDraft): string {
  const trimmed = text.trim()
  if (trimmed === 'null') return ''
  if (snapshot !== null && snapshot.length < text.length && isJsonObject(snapshot) && !isJsonObject(trimmed))
    return snapshot
  const rest = withoutPlaceholder(trimmed)
  return rest === trimmed ? text : rest
}

function isJsonObject(text: string): boolean {
  return text.startsWith('{') && parseJsonOr(text, undefined) !== undefined
}

function createUniqueIds(): (id: string) => string {
  const used = new Set<string>()
  const counts = new Map<string, number>()
  return (id) => {
    let unique = id
    while (used.has(unique)) {
      const count = (counts.get(id) ?? 1) + 1
      counts.set(id, count)
      unique = `${id}_${count}`
    }
    used.add(unique)
    return unique
  }
}
