import type { Json, JsonObject } from '../../../../machines/agent/json.js'
import type { ToolCall } from '../../../../machines/agent/messages.js'
import type { ToolCallDelta } from '../provider.js'
import { asList, asObject, asText } from '../as-json.js'

interface CallDraft {
  id: string
  name: string
  arguments: string
  /** Pieces that the arguments came in. */
  pieces: number
  extra: Json | undefined
}

/** Puts streamed tool calls together. Providers differ in how they say which call a piece belongs to: see `find`. */
export class ToolCallFold {
  readonly #drafts: CallDraft[] = []
  readonly #byIndex = new Map<number, CallDraft>()
  readonly #byId = new Map<string, CallDraft>()
  #last: CallDraft | undefined

  /** Calls that have begun. */
  get length(): number {
    return this.#drafts.length
  }

  /**
   * Takes one `delta.tool_calls`; returns the characters of arguments that it brought. Its parts are added to `told`, if
   * there is one.
   */
  push(deltas: unknown, told?: ToolCallDelta[]): number {
    let length = 0
    for (const delta of asList(deltas)) {
      const entry = asObject(delta)
      if (entry === null) continue
      const call = asObject(entry.function)
      const index = typeof entry.index === 'number' ? entry.index : null
      const id = typeof entry.id === 'number' ? String(entry.id) : asText(entry.id)
      const name = asText(call?.name)
      const piece = readArguments(call)

      let draft = this.#find(index, id)
      if (draft === undefined || isAnotherCall(draft, id, name, piece)) {
        draft = { id: '', name: '', arguments: '', pieces: 0, extra: undefined }
        this.#drafts.push(draft)
      }
      // Some providers repeat id and name on every piece: the first ones count, nothing is joined.
      draft.id ||= id
      draft.name ||= name
      if (piece !== '') {
        draft.arguments += piece
        draft.pieces += 1
      }
      if (entry.extra_content != null) draft.extra = entry.extra_content
      if (index !== null) this.#byIndex.set(index, draft)
      if (id !== '') this.#byId.set(id, draft)
      this.#last = draft
      length += piece.length
      if (told !== undefined) {
        const at = this.#drafts.lastIndexOf(draft)
        told.push({ index: at, id: draft.id, name: draft.name, arguments: piece })
      }
    }
    return length
  }

  /** The calls in the order in which they began: ids unique within the answer or '', arguments never empty. */
  result(): ToolCall[] {
    const uniqueId = createUniqueIds()
    return this.#drafts
      .filter((draft) => draft.id !== '' || draft.name !== '' || draft.arguments !== '')
      .map((draft) => ({
        id: draft.id && uniqueId(draft.id),
        type: 'function' as const,
        function: { name: draft.name, arguments: tidyArguments(draft.arguments) },
        ...(draft.extra !== undefined && { extra_content: draft.extra }),
      }))
  }

  /** By index where there is one, else by id, else the last call. */
  #find(index: number | null, id: string): CallDraft | undefined {
    return index === null ? (this.#byId.get(id) ?? this.#last) : this.#byIndex.get(index)
  }
}

function readArguments(call: JsonObject | null): string {
  const value = call?.arguments
  // Some servers send the arguments parsed.
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : asText(value)
}

/** Whether a named piece begins another call although it claims the place of this one (Ollama, Gemini). */
function isAnotherCall(draft: CallDraft, id: string, name: string, piece: string): boolean {
  if (name === '') return false
  if (id !== '' && draft.id !== '') return draft.id !== id
  if (draft.name !== '' && draft.name !== name) return true
  const anonymous = id === '' && draft.id === '' && draft.name !== ''
  return anonymous && draft.pieces === 1 && isJsonObject(draft.arguments) && isJsonObject(piece)
}

function isJsonObject(text: string): boolean {
  if (!text.startsWith('{')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** No arguments are `{}`; a `{}` that was sent as a placeholder before the real ones is dropped. */
function tidyArguments(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === 'null') return '{}'
  if (!trimmed.startsWith('{}')) return text
  const rest = trimmed.slice(2).trimStart()
  return rest.startsWith('{') ? rest : text
}

function createUniqueIds(): (id: string) => string {
  const taken = new Set<string>()
  const counts = new Map<string, number>()
  return (id) => {
    let unique = id
    while (taken.has(unique)) {
      const count = (counts.get(id) ?? 1) + 1
      counts.set(id, count)
      unique = `${id}_${count}`
    }
    taken.add(unique)
    return unique
  }
}
