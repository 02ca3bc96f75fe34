import type { AgentEvent } from '../../machines/agent/announcements.js'

type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

/** One event; null when later subscribers do not need it any more. */
interface EventEntry {
  event: AgentEvent | null
}

/** Consecutive chunks of one kind, or parts of one call's arguments, merged into one text. */
interface TextEntry {
  /** The last chunk: a reader that is up to date continues after it. */
  last: Chunk | CallDelta
  firstSeq: number
  kind: 'text' | 'reasoning' | 'arguments'
  /** One text when the entry is complete. */
  chunks: string[]
  isJoined: boolean
}

type Entry = EventEntry | TextEntry

/** About how many characters a reader gets at a time. */
const maxReadChars = 64_000

/**
 * The events of a run up to its next rest, for readers that subscribe at any time and read at their own pace. A late reader
 * starts at the beginning; a slow reader delays only itself. Events are stored once for all readers. Chunks of one text are
 * merged; text that was reset, outdated progress and the parts of complete calls are dropped.
 */
export class ReplayBuffer {
  readonly entries: Entry[] = []
  #isOver = false
  /** The error that a reader gets at the end. */
  #failure: { error: unknown } | null = null
  /** Where the chunks and the calls of the current step are: a reset discards them. */
  #stepChunks: { stepId: string; at: number[] } = { stepId: '', at: [] }
  /** Where the last progress and the streamed arguments of each call, and the text of each sub-agent are. */
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

  /** Marks the end: no more events follow. */
  end(): void {
    this.#isOver = true
    this.#joinText()
    this.#notifyReaders()
  }

  /** Ends the buffer with an error: readers get it after the last event. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.end()
  }

  /** @throws the error of `fail` */
  checkEnd(): void {
    if (this.#failure) throw this.#failure.error
  }

  /** A reader from the beginning, from the next event, or after the event with this `seq`. */
  createReader(from: 'beginning' | 'now' | number = 'beginning'): ReplayReader {
    return new ReplayReader(this, from)
  }

  /** Resolves when there is a new event. */
  waitForEvents(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
    })
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
    const key = getCallKey(callId)
    const known = this.#transient.get(key)
    if (known) known.push(at)
    else this.#transient.set(key, [at])
  }

  #startStep(stepId: string): void {
    if (this.#stepChunks.stepId !== stepId) this.#stepChunks = { stepId, at: [] }
  }

  #addEvent(event: AgentEvent): void {
    this.#append({ event })
    const passing = getTransientKey(event)
    if (passing === null) return
    const at = this.#transient.get(passing.of) ?? []
    if (!passing.adds) this.#discard(at)
    if (passing.isNews) at.push(this.entries.length - 1)
    this.#transient.set(passing.of, at)
  }

  #discard(at: number[]): void {
    for (const i of at) this.entries[i] = { event: null }
    at.length = 0
  }

  #append(entry: Entry): void {
    this.#joinText()
    this.entries.push(entry)
  }

  /** The text is complete: joins its chunks. */
  #joinText(): void {
    const last = this.entries.at(-1)
    if (!last || !('kind' in last) || last.isJoined) return
    last.chunks = [last.chunks.join('')]
    last.isJoined = true
  }
}

/** Reads events as they arrive. */
export interface EventReader {
  /** The events since the last call; null after the end. */
  takeEvents(): AgentEvent[] | null
  /** Resolves when there may be more events. */
  waitForEvents(): Promise<void>
}

/** Reads a replay buffer at its own pace. */
export class ReplayReader implements EventReader {
  readonly #buffer: ReplayBuffer
  #at = 0
  /** How many chunks and characters of the current text entry were read. */
  #chunks = 0
  #chars = 0
  /** The step whose text is sent again: its first chunk resets what the reader has. */
  #restatedStep: string | null = null

  constructor(buffer: ReplayBuffer, from: 'beginning' | 'now' | number) {
    this.#buffer = buffer
    if (typeof from === 'number') this.#skipTo(from)
    if (from === 'now') this.#skipAll()
  }

  /** The events since the last call, at most about 64,000 characters; null after the end. */
  takeEvents(): AgentEvent[] | null {
    const { entries, isOver } = this.#buffer
    const taken: AgentEvent[] = []
    let size = 0
    while (this.#at < entries.length && size < maxReadChars) {
      const entry = entries[this.#at] as Entry
      const event = 'kind' in entry ? this.#readText(entry) : entry.event
      if (event) {
        taken.push(...this.#restate(event))
        size += estimateSize(event)
      }
      if ('kind' in entry && this.#at === entries.length - 1 && !isOver) break
      this.#at += 1
      this.#chunks = 0
      this.#chars = 0
    }
    if (taken.length > 0 || !isOver || this.#at < entries.length) return taken
    this.#buffer.checkEnd()
    return null
  }

  /** Resolves when there may be more events. */
  waitForEvents(): Promise<void> {
    return this.#buffer.waitForEvents()
  }

  #readText(words: TextEntry): AgentEvent | null {
    const { chunks, kind, last, isJoined } = words
    const isFirstRead = this.#chunks === 0
    const text = isJoined ? (chunks[0] as string).slice(this.#chars) : chunks.slice(this.#chunks).join('')
    this.#chunks = chunks.length
    this.#chars += text.length
    // The first part of a call has its name alone.
    if (text === '' && !(kind === 'arguments' && isFirstRead)) return null
    // A reader that keeps up gets the original chunk.
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

  /** Skips to the event after this one. In the middle of a text, the step is sent again from its beginning. */
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

/**
 * Events that replace earlier ones: progress, the text of sub-agents until their message arrives, and a call whose
 * arguments streamed.
 */
function getTransientKey(event: AgentEvent): { of: string; isNews: boolean; adds: boolean } | null {
  switch (event.type) {
    case 'tool_progress':
      return { of: `progress ${event.callId}`, isNews: true, adds: false }
    case 'tool_call':
      return { of: getCallKey(event.call.id), isNews: false, adds: false }
    case 'step_progress':
      return { of: `step ${event.stepId}`, isNews: true, adds: false }
    case 'child_event': {
      const { type } = event.event
      const key = `child ${event.callId}`
      if (liveTypes.has(type)) return { of: key, isNews: true, adds: true }
      return type === 'assistant_message' ? { of: key, isNews: false, adds: false } : null
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
