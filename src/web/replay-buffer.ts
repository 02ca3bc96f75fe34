import { getOrCreate } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'

type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

/** One event, or null if later subscribers no longer need it. */
interface EventEntry {
  event: AgentEvent | null
}

/** Consecutive chunks of one kind, or parts of one call's arguments, merged into one text. */
interface TextEntry {
  /** Readers that are up to date continue after this chunk. */
  last: Chunk | CallDelta
  firstSeq: number
  kind: 'text' | 'reasoning' | 'arguments'
  /** The chunks of the text, which are joined once the entry is complete. */
  chunks: string[]
  isJoined: boolean
}

type Entry = EventEntry | TextEntry

/** Approximate number of characters per read. */
const maxReadChars = 64_000

/**
 * Buffers the events of a run up to its next rest, for readers that subscribe at any time and read at their own pace.
 * Late readers start at the beginning, and slow readers do not delay others. Text chunks are merged. Text that was
 * reset, outdated progress and the argument chunks of complete calls are dropped.
 */
export class ReplayBuffer {
  readonly entries: Entry[] = []
  #isOver = false
  #failure: { error: unknown } | null = null
  /** The entries of the current step's chunks and calls. A reset discards them. */
  #stepChunks: { stepId: string; at: number[] } = { stepId: '', at: [] }
  /** Entries that a later event replaces: progress, streamed arguments, and the text of sub-agents. */
  readonly #transient = new Map<string, number[]>()
  #waiters: (() => void)[] = []

  get isOver(): boolean {
    return this.#isOver
  }

  push(event: AgentEvent): void {
    if (this.#isOver) return
    if (event.type === 'stream_chunk') this.#addChunk(event)
    else if (event.type === 'tool_call_delta') this.#addCallDelta(event)
    else this.#addEvent(event)
    this.#notifyReaders()
  }

  end(): void {
    this.#isOver = true
    this.#joinText()
    this.#notifyReaders()
  }

  /** Ends the buffer with an error that readers receive after the last event. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.end()
  }

  /** @throws the error of `fail` */
  checkEnd(): void {
    if (this.#failure) throw this.#failure.error
  }

  /** Creates a reader that starts at the beginning, with the next event, or after the event with this `seq`. */
  createReader(from?: 'beginning' | 'now' | number): ReplayReader {
    return new ReplayReader(this, from)
  }

  waitForEvents(): Promise<void> {
    return new Promise((resolve) => void this.#waiters.push(resolve))
  }

  #notifyReaders(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const resolve of waiters) resolve()
  }

  #addChunk(chunk: Chunk): void {
    const { stepId, text, reasoning = '' } = chunk
    this.#startStep(stepId)
    if (chunk.reset) this.#discard(this.#stepChunks.at)
    const kind = text === '' ? 'reasoning' : 'text'
    const last = this.entries.at(-1)
    if (chunk.reset || chunk.finished || (text !== '' && reasoning !== '')) {
      this.#append({ event: chunk })
    } else if (last && 'kind' in last && last.kind === kind && belongsTo(last, chunk)) {
      last.chunks.push(text + reasoning)
      last.last = chunk
      return
    } else
      this.#append({ last: chunk, firstSeq: chunk.seq, kind, chunks: [text + reasoning], isJoined: false })
    this.#stepChunks.at.push(this.entries.length - 1)
  }

  #addCallDelta(event: CallDelta): void {
    const { stepId, callId, delta } = event
    this.#startStep(stepId)
    const last = this.entries.at(-1)
    if (last && 'kind' in last && last.kind === 'arguments' && belongsTo(last, event)) {
      last.chunks.push(delta)
      last.last = event
      return
    }
    this.#append({ last: event, firstSeq: event.seq, kind: 'arguments', chunks: [delta], isJoined: false })
    const at = this.entries.length - 1
    this.#stepChunks.at.push(at)
    getOrCreate(this.#transient, getCallKey(callId), () => []).push(at)
  }

  #startStep(stepId: string): void {
    if (this.#stepChunks.stepId !== stepId) this.#stepChunks = { stepId, at: [] }
  }

  #addEvent(event: AgentEvent): void {
    this.#append({ event })
    const transient = getTransientKey(event)
    if (transient === null) return
    const at = this.#transient.get(transient.key) ?? []
    if (!transient.adds) this.#discard(at)
    if (transient.isStored) at.push(this.entries.length - 1)
    this.#transient.set(transient.key, at)
  }

  #discard(at: number[]): void {
    for (const i of at) this.entries[i] = { event: null }
    at.length = 0
  }

  #append(entry: Entry): void {
    this.#joinText()
    this.entries.push(entry)
  }

  #joinText(): void {
    const last = this.entries.at(-1)
    if (!last || !('kind' in last) || last.isJoined) return
    last.chunks = [last.chunks.join('')]
    last.isJoined = true
  }
}

/** Reads a replay buffer at its own pace. */
export class ReplayReader {
  readonly #buffer: ReplayBuffer
  #at = 0
  /** Number of chunks and characters read from the current text entry. */
  #chunks = 0
  #chars = 0
  /** The step whose text is repeated. Its first chunk resets the reader's text. */
  #restatedStep: string | null = null

  constructor(buffer: ReplayBuffer, from: 'beginning' | 'now' | number = 'beginning') {
    this.#buffer = buffer
    if (typeof from === 'number') this.#skipTo(from)
    if (from === 'now') this.#skipAll()
  }

  /** Returns the events since the last call, up to about 64,000 characters, or null after the end. */
  takeEvents(): AgentEvent[] | null {
    const { entries, isOver } = this.#buffer
    const events: AgentEvent[] = []
    let size = 0
    while (this.#at < entries.length && size < maxReadChars) {
      const entry = entries[this.#at] as Entry
      const event = 'kind' in entry ? this.#readText(entry) : entry.event
      if (event) {
        events.push(...this.#restate(event))
        size += estimateSize(event)
      }
      if ('kind' in entry && this.#at === entries.length - 1 && !isOver) break
      this.#at += 1
      this.#chunks = 0
      this.#chars = 0
    }
    if (events.length > 0 || !isOver || this.#at < entries.length) return events
    this.#buffer.checkEnd()
    return null
  }

  /** The events in batches, up to the end of the buffer. */
  async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent[], void> {
    for (let events = this.takeEvents(); events !== null; events = this.takeEvents()) {
      if (events.length === 0) await this.#buffer.waitForEvents()
      else yield events
    }
  }

  #readText(entry: TextEntry): AgentEvent | null {
    const { chunks, kind, last, isJoined } = entry
    const isFirstRead = this.#chunks === 0
    const text = isJoined ? (chunks[0] as string).slice(this.#chars) : chunks.slice(this.#chunks).join('')
    this.#chunks = chunks.length
    this.#chars += text.length
    // The first chunk of a call contains only its name.
    if (text === '' && !(kind === 'arguments' && isFirstRead)) return null
    // Readers that keep up receive the original chunk.
    if (last.type === 'tool_call_delta') return text === last.delta ? last : { ...last, delta: text }
    if (text === (kind === 'text' ? last.text : last.reasoning)) return last
    const { reasoning: _, ...rest } = last
    return kind === 'text' ? { ...rest, text } : { ...rest, text: '', reasoning: text }
  }

  #restate(event: AgentEvent): AgentEvent[] {
    if (event.type !== 'stream_chunk' && event.type !== 'tool_call_delta') return [event]
    if (event.stepId !== this.#restatedStep) return [event]
    this.#restatedStep = null
    if (event.type === 'stream_chunk') return [{ ...event, reset: true }]
    const { callId: _id, name: _name, index: _index, delta: _delta, ...rest } = event
    return [{ ...rest, type: 'stream_chunk', text: '', finished: false, reset: true }, event]
  }

  #skipAll(): void {
    const { entries } = this.#buffer
    const last = entries.at(-1)
    this.#at = entries.length
    if (!last || !('kind' in last) || last.isJoined) return
    // More chunks of this text may follow.
    this.#at -= 1
    this.#chunks = last.chunks.length
    this.#chars = last.chunks.join('').length
  }

  /** Skips to the event after this one. In the middle of a text, repeats the step from its start. */
  #skipTo(seq: number): void {
    const { entries } = this.#buffer
    while (this.#at < entries.length && getLastSeq(entries[this.#at] as Entry) <= seq) this.#at += 1
    const entry = entries[this.#at]
    if (!entry) return this.#skipAll()
    if (!('kind' in entry) || entry.firstSeq > seq) return
    this.#restatedStep = entry.last.stepId
    while (this.#at > 0 && isPartOfStep(entries[this.#at - 1] as Entry, entry.last.stepId)) this.#at -= 1
  }
}

function belongsTo({ last }: TextEntry, event: Chunk | CallDelta): boolean {
  const isSameCall =
    event.type === 'stream_chunk' || (last.type === 'tool_call_delta' && last.callId === event.callId)
  return isSameCall && last.stepId === event.stepId && last.attempt === event.attempt
}

const getCallKey = (callId: string): string => `call ${callId}`

/** Progress replaces earlier progress, and a complete message or call replaces its chunks. */
function getTransientKey(event: AgentEvent): { key: string; isStored: boolean; adds: boolean } | null {
  switch (event.type) {
    case 'tool_progress':
      return { key: `progress ${event.callId}`, isStored: true, adds: false }
    case 'tool_call':
      return { key: getCallKey(event.call.id), isStored: false, adds: false }
    case 'step_progress':
      return { key: `step ${event.stepId}`, isStored: true, adds: false }
    case 'child_event': {
      const { type } = event.event
      const key = `child ${event.callId}`
      if (liveTypes.has(type)) return { key, isStored: true, adds: true }
      return type === 'assistant_message' ? { key, isStored: false, adds: false } : null
    }
    default:
      return null
  }
}

const liveTypes: ReadonlySet<AgentEvent['type']> = new Set([
  'stream_chunk',
  'tool_call_delta',
  'tool_progress',
  'step_progress',
])

function isPartOfStep(entry: Entry, stepId: string): boolean {
  if ('kind' in entry) return entry.last.stepId === stepId
  return entry.event === null || (entry.event.type === 'stream_chunk' && entry.event.stepId === stepId)
}

function getLastSeq(entry: Entry): number {
  return 'kind' in entry ? entry.last.seq : (entry.event?.seq ?? 0)
}

function estimateSize(event: AgentEvent): number {
  switch (event.type) {
    case 'stream_chunk':
      return event.text.length + (event.reasoning?.length ?? 0) + 100
    case 'tool_call_delta':
      return event.delta.length + 100
    case 'tool_result':
      return event.content.length + 100
    case 'assistant_message':
      return (event.message.content?.length ?? 0) + 100
    default:
      return 200
  }
}
