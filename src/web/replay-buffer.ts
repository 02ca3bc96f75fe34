import type { AgentEvent } from '../../machines/agent/announcements.js'

type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>

/** One event; null once it is of no use to those who come later. */
interface EventEntry {
  event: AgentEvent | null
}

/** Chunks of one kind that follow each other, as one text. */
interface TextEntry {
  /** The last of them: whoever has read so far goes on after it. */
  last: Chunk
  firstSeq: number
  kind: 'text' | 'reasoning'
  /** One once all have come. */
  chunks: string[]
  isJoined: boolean
}

type Entry = EventEntry | TextEntry

/** Characters that a reader is given at a time, about. */
const maxReadChars = 64_000

/**
 * The events of a run up to its next rest, for readers that come at any time and read at any pace: who comes late reads
 * from the beginning, and who reads slowly keeps nothing waiting but himself. Everything is kept once, however many read;
 * text that has come in pieces is kept as one, and what has been taken back, or overtaken by news, not at all.
 */
export class ReplayBuffer {
  readonly entries: Entry[] = []
  #isOver = false
  /** What whoever reads up to the end is told. */
  #failure: { error: unknown } | null = null
  /** Where the chunks of the present step are: a reset takes them back. */
  #stepChunks: { stepId: string; at: number[] } = { stepId: '', at: [] }
  /** The last progress of each call, and the words of each sub-agent. */
  readonly #transient = new Map<string, number[]>()
  #waiters: (() => void)[] = []

  get isOver(): boolean {
    return this.#isOver
  }

  push(event: AgentEvent): void {
    if (this.#isOver) return
    if (event.type === 'stream_chunk') this.#addChunk(event)
    else this.#addEvent(event)
    this.#notifyReaders()
  }

  /** Nothing comes any more. */
  end(): void {
    this.#isOver = true
    this.#joinText()
    this.#notifyReaders()
  }

  /** Nothing can be heard any more: whoever has read it all is told why. */
  fail(error: unknown): void {
    this.#failure = { error }
    this.end()
  }

  /** @throws what it has failed with */
  checkEnd(): void {
    if (this.#failure) throw this.#failure.error
  }

  /** From the beginning, from what comes next, or after an event of it. */
  createReader(from: 'beginning' | 'now' | number = 'beginning'): ReplayReader {
    return new ReplayReader(this, from)
  }

  /** Settles when there is something new. */
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
    if (this.#stepChunks.stepId !== stepId) this.#stepChunks = { stepId, at: [] }
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

  /** What follows is something else: the pieces are one text from now on. */
  #joinText(): void {
    const last = this.entries.at(-1)
    if (!last || !('kind' in last) || last.isJoined) return
    last.chunks = [last.chunks.join('')]
    last.isJoined = true
  }
}

/** Events as they come. */
export interface EventReader {
  /** What has come since; null once there is nothing more to come. */
  takeEvents(): AgentEvent[] | null
  /** Settles when there may be more to take. */
  waitForEvents(): Promise<void>
}

/** Reads a feed at its own pace. */
export class ReplayReader implements EventReader {
  readonly #buffer: ReplayBuffer
  #at = 0
  /** Of the entry at hand, if it is a text: how many pieces and characters were read. */
  #chunks = 0
  #chars = 0
  /** The step whose text is told anew: its first chunk takes back what was told of it. */
  #restatedStep: string | null = null

  constructor(buffer: ReplayBuffer, from: 'beginning' | 'now' | number) {
    this.#buffer = buffer
    if (typeof from === 'number') this.#skipTo(from)
    if (from === 'now') this.#skipAll()
  }

  /** What has come since, about 64,000 characters at most; null once there is nothing more to come. */
  takeEvents(): AgentEvent[] | null {
    const { entries, isOver } = this.#buffer
    const taken: AgentEvent[] = []
    let size = 0
    while (this.#at < entries.length && size < maxReadChars) {
      const entry = entries[this.#at] as Entry
      const event = 'kind' in entry ? this.#readText(entry) : entry.event
      if (event) {
        taken.push(this.#restate(event))
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

  /** Settles when there may be more to take. */
  waitForEvents(): Promise<void> {
    return this.#buffer.waitForEvents()
  }

  #readText(words: TextEntry): AgentEvent | null {
    const { chunks, kind, last, isJoined } = words
    const text = isJoined ? (chunks[0] as string).slice(this.#chars) : chunks.slice(this.#chunks).join('')
    this.#chunks = chunks.length
    this.#chars += text.length
    if (text === '') return null
    // Taken one by one, chunks are handed on as they came.
    if (text === (kind === 'text' ? last.text : last.reasoning)) return last
    const { reasoning: _, ...rest } = last
    return kind === 'text' ? { ...rest, text } : { ...rest, text: '', reasoning: text }
  }

  #restate(event: AgentEvent): AgentEvent {
    if (event.type !== 'stream_chunk' || event.stepId !== this.#restatedStep) return event
    this.#restatedStep = null
    return { ...event, reset: true }
  }

  #skipAll(): void {
    const { entries } = this.#buffer
    const last = entries.at(-1)
    this.#at = entries.length
    if (!last || !('kind' in last) || last.isJoined) return
    // More of this text may come.
    this.#at -= 1
    this.#chunks = last.chunks.length
    this.#chars = last.chunks.join('').length
  }

  /** Goes to what was told after that event. In the middle of a text, the step is told anew. */
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

function belongsTo({ last }: TextEntry, { stepId, attempt }: Chunk): boolean {
  return last.stepId === stepId && last.attempt === attempt
}

/** News that make those before them useless: progress, and the words of sub-agents until their message is there. */
function getTransientKey(event: AgentEvent): { of: string; isNews: boolean; adds: boolean } | null {
  switch (event.type) {
    case 'tool_progress':
      return { of: `progress ${event.callId}`, isNews: true, adds: false }
    case 'step_progress':
      return { of: `step ${event.stepId}`, isNews: true, adds: false }
    case 'child_event': {
      const { type } = event.event
      const key = `child ${event.callId}`
      if (type === 'stream_chunk' || type === 'tool_progress' || type === 'step_progress')
        return { of: key, isNews: true, adds: true }
      return type === 'assistant_message' ? { of: key, isNews: false, adds: false } : null
    }
    default:
      return null
  }
}

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
    case 'tool_result':
      return event.content.length + 100
    case 'assistant_message':
      return (event.message.content?.length ?? 0) + 100
    default:
      return 200
  }
}
