import { asText } from '../base/values.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { ToolCallDelta } from '../models/provider.js'

/** A call on its way. */
interface StreamedCall {
  id: string
  name: string
  /** Its arguments until they are emitted. */
  pending: string
  state: 'unnamed' | 'empty' | 'streams' | 'whole'
}

/**
 * Emits the parts of an answer's calls under the ids that the calls will have. A call whose id the run may change, the one
 * that takes the final answer, and those that are made through `call_tool` only come whole.
 */
export class CallStream {
  readonly #stream: AnswerStream
  readonly #wholeTools: readonly (string | undefined)[]
  readonly #toCallId: (id: string) => string
  #calls = new Map<number, StreamedCall>()
  #ids = new Set<string>()

  constructor(
    stream: AnswerStream,
    wholeTools: readonly (string | undefined)[],
    toCallId = (id: string) => id,
  ) {
    this.#stream = stream
    this.#toCallId = toCallId
    this.#wholeTools = wholeTools
  }

  /** Another model answers: its calls are counted anew. */
  restart(): void {
    this.#calls = new Map()
    this.#ids = new Set()
  }

  /** Ignores what a provider must not send: it is not worth a failed run. */
  write({ index, ...given }: ToolCallDelta): void {
    if (!Number.isInteger(index)) return
    const [id, name, added] = [given.id, given.name, given.arguments].map(asText) as [string, string, string]
    const call = this.#getCall(index)
    if (call.state === 'whole') return
    if (call.state === 'streams') {
      if (added !== '') this.#emit(index, call, added)
      return
    }
    call.id ||= id
    call.name ||= name
    call.pending += added
    if (call.state === 'unnamed') this.#begin(index, call)
    if (call.state !== 'empty') return
    const trimmed = call.pending.trim()
    if (isPlaceholder(trimmed)) {
      // A model may write blanks without end: they are not kept.
      call.pending = trimmed
      return
    }
    const text = withoutPlaceholder(call.pending.trimStart())
    call.pending = ''
    call.state = 'streams'
    this.#emit(index, call, text)
  }

  #begin(index: number, call: StreamedCall): void {
    const { name } = call
    if (call.id === '' || name === '') return
    const id = this.#toCallId(call.id)
    call.id = id
    call.state = this.#isCertain(id) && !this.#wholeTools.includes(name) ? 'empty' : 'whole'
    this.#ids.add(id)
    if (call.state === 'empty') this.#emit(index, call, '')
  }

  /** Ids that repeat, or that have a slash, may change when the answer is whole. */
  #isCertain(id: string): boolean {
    return !id.includes('/') && ![...this.#ids].some((known) => known === id || known.startsWith(`${id}/`))
  }

  #getCall(index: number): StreamedCall {
    const known = this.#calls.get(index)
    if (known) return known
    const call: StreamedCall = { id: '', name: '', pending: '', state: 'unnamed' }
    this.#calls.set(index, call)
    return call
  }

  #emit(index: number, { id, name }: StreamedCall, delta: string): void {
    this.#stream.writeCall({ callId: id, name, index, delta })
  }
}

/** Some providers send `{}` or `null` before the real arguments. */
function isPlaceholder(text: string): boolean {
  return text === '' || text === '{}' || text === 'null'
}

/** Without the `{}` that stands before the real arguments. */
function withoutPlaceholder(text: string): string {
  const rest = text.startsWith('{}') ? text.slice(2).trimStart() : ''
  return rest.startsWith('{') ? rest : text
}
