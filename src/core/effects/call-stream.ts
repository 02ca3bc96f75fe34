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
 * Emits the parts of an answer's calls under the ids that the calls will have. A call whose id the run may change, and the
 * one that takes the final answer, only come whole.
 */
export class CallStream {
  readonly #stream: AnswerStream
  readonly #finalTool: string | undefined
  #calls = new Map<number, StreamedCall>()
  #ids = new Set<string>()

  constructor(stream: AnswerStream, finalTool: string | undefined) {
    this.#stream = stream
    this.#finalTool = finalTool
  }

  /** Another model answers: its calls are counted anew. */
  restart(): void {
    this.#calls = new Map()
    this.#ids = new Set()
  }

  write({ index, id, name, arguments: added }: ToolCallDelta): void {
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
    if (call.state !== 'empty' || isPlaceholder(call.pending)) return
    const text = call.pending.replace(/^\s*\{\}\s*(?=\{)/, '')
    call.pending = ''
    call.state = 'streams'
    this.#emit(index, call, text)
  }

  #begin(index: number, call: StreamedCall): void {
    const { id, name } = call
    if (id === '' || name === '') return
    call.state = this.#isCertain(id) && name !== this.#finalTool ? 'empty' : 'whole'
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
  return /^\s*(\{\}|null)?\s*$/.test(text)
}
