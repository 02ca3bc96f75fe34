import type { AgentEvent } from '../../machines/agent/announcements.js'

type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>

/** One event; null once it is of no use to those who come later. */
interface Told {
  event: AgentEvent | null
}

/** Chunks of one kind that follow each other, as one text. */
interface Words {
  /** The last of them: whoever has read so far goes on after it. */
  last: Chunk
  firstSeq: number
  kind: 'text' | 'reasoning'
  /** One once all have come. */
  pieces: string[]
  isWhole: boolean
}

type Entry = Told | Words

/** Characters that a reader is given at a time, about. */
const atOnce = 64_000

/**
 * The events of a run up to its next rest, for readers that come at any time and read at any pace: who comes late reads
 * from the beginning, and who reads slowly keeps nothing waiting but himself. Everything is kept once, however many read;
 * text that has come in pieces is kept as one, and what has been taken back, or overtaken by news, not at all.
 */
export class RunFeed {
  readonly entries: Entry[] = []
  #isOver = false
  /** What whoever reads up to the end is told. */
  #failure: { error: unknown } | null = null
  /** Where the chunks of the present step are: a reset takes them back. */
  #shown: { stepId: string; at: number[] } = { stepId: '', at: [] }
  /** The last progress of each call, and the words of each sub-agent. */
  readonly #passing = new Map<string, number[]>()
  #waiting: (() => void)[] = []

  get isOver(): boolean {
    return this.#isOver
  }

  push(event: AgentEvent): void {
    if (this.#isOver) return
    if (event.type === 'stream_chunk') this.#hear(event)
    else this.#tell(event)
    this.#wake()
  }

  /** Nothing comes any more. */
  end(): void {
    this.#isOver = true
    this.#close()
    this.#wake()
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
  read(from: 'beginning' | 'now' | number = 'beginning'): FeedReader {
    return new FeedReader(this, from)
  }

  /** Settles when there is something new. */
  news(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  #hear(chunk: Chunk): void {
    const { stepId, text, reasoning = '' } = chunk
    if (this.#shown.stepId !== stepId) this.#shown = { stepId, at: [] }
    if (chunk.reset) this.#forget(this.#shown.at)
    const kind = text === '' ? 'reasoning' : 'text'
    const last = this.entries.at(-1)
    if (chunk.reset || chunk.finished || (text !== '' && reasoning !== '')) {
      this.#add({ event: chunk })
    } else if (last && 'kind' in last && last.kind === kind && isOf(last, chunk)) {
      last.pieces.push(text + reasoning)
      last.last = chunk
      return
    } else this.#add({ last: chunk, firstSeq: chunk.seq, kind, pieces: [text + reasoning], isWhole: false })
    this.#shown.at.push(this.entries.length - 1)
  }

  #tell(event: AgentEvent): void {
    this.#add({ event })
    const passing = passingKey(event)
    if (passing === null) return
    const at = this.#passing.get(passing.of) ?? []
    if (!passing.adds) this.#forget(at)
    if (passing.isNews) at.push(this.entries.length - 1)
    this.#passing.set(passing.of, at)
  }

  #forget(at: number[]): void {
    for (const i of at) this.entries[i] = { event: null }
    at.length = 0
  }

  #add(entry: Entry): void {
    this.#close()
    this.entries.push(entry)
  }

  /** What follows is something else: the pieces are one text from now on. */
  #close(): void {
    const last = this.entries.at(-1)
    if (!last || !('kind' in last) || last.isWhole) return
    last.pieces = [last.pieces.join('')]
    last.isWhole = true
  }
}

/** Events as they come. */
export interface EventReader {
  /** What has come since; null once there is nothing more to come. */
  take(): AgentEvent[] | null
  /** Settles when there may be more to take. */
  news(): Promise<void>
}

/** Reads a feed at its own pace. */
export class FeedReader implements EventReader {
  readonly #feed: RunFeed
  #at = 0
  /** Of the entry at hand, if it is a text: how many pieces and characters were read. */
  #pieces = 0
  #chars = 0
  /** The step whose text is told anew: its first chunk takes back what was told of it. */
  #retold: string | null = null

  constructor(feed: RunFeed, from: 'beginning' | 'now' | number) {
    this.#feed = feed
    if (typeof from === 'number') this.#skip(from)
    if (from === 'now') this.#skipAll()
  }

  /** What has come since, about 64,000 characters at most; null once there is nothing more to come. */
  take(): AgentEvent[] | null {
    const { entries, isOver } = this.#feed
    const taken: AgentEvent[] = []
    let size = 0
    while (this.#at < entries.length && size < atOnce) {
      const entry = entries[this.#at] as Entry
      const event = 'kind' in entry ? this.#unread(entry) : entry.event
      if (event) {
        taken.push(this.#asRetold(event))
        size += sizeOf(event)
      }
      if ('kind' in entry && this.#at === entries.length - 1 && !isOver) break
      this.#at += 1
      this.#pieces = 0
      this.#chars = 0
    }
    if (taken.length > 0 || !isOver || this.#at < entries.length) return taken
    this.#feed.checkEnd()
    return null
  }

  /** Settles when there may be more to take. */
  news(): Promise<void> {
    return this.#feed.news()
  }

  #unread(words: Words): AgentEvent | null {
    const { pieces, kind, last, isWhole } = words
    const text = isWhole ? (pieces[0] as string).slice(this.#chars) : pieces.slice(this.#pieces).join('')
    this.#pieces = pieces.length
    this.#chars += text.length
    if (text === '') return null
    // Taken one by one, chunks are handed on as they came.
    if (text === (kind === 'text' ? last.text : last.reasoning)) return last
    const { reasoning: _, ...rest } = last
    return kind === 'text' ? { ...rest, text } : { ...rest, text: '', reasoning: text }
  }

  #asRetold(event: AgentEvent): AgentEvent {
    if (event.type !== 'stream_chunk' || event.stepId !== this.#retold) return event
    this.#retold = null
    return { ...event, reset: true }
  }

  #skipAll(): void {
    const { entries } = this.#feed
    const last = entries.at(-1)
    this.#at = entries.length
    if (!last || !('kind' in last) || last.isWhole) return
    // More of this text may come.
    this.#at -= 1
    this.#pieces = last.pieces.length
    this.#chars = last.pieces.join('').length
  }

  /** Goes to what was told after that event. In the middle of a text, the step is told anew. */
  #skip(seq: number): void {
    const { entries } = this.#feed
    while (this.#at < entries.length && lastSeqOf(entries[this.#at] as Entry) <= seq) this.#at += 1
    const entry = entries[this.#at]
    if (!entry) return this.#skipAll()
    if (!('kind' in entry) || entry.firstSeq > seq) return
    this.#retold = entry.last.stepId
    while (this.#at > 0 && isPartOf(entries[this.#at - 1] as Entry, entry.last.stepId)) this.#at -= 1
  }
}

function isOf({ last }: Words, { stepId, attempt }: Chunk): boolean {
  return last.stepId === stepId && last.attempt === attempt
}

/** News that make those before them useless: progress, and the words of sub-agents until their message is there. */
function passingKey(event: AgentEvent): { of: string; isNews: boolean; adds: boolean } | null {
  switch (event.type) {
    case 'tool_progress':
      return { of: `progress ${event.callId}`, isNews: true, adds: false }
    case 'step_progress':
      return { of: `step ${event.stepId}`, isNews: true, adds: false }
    case 'child_event': {
      const { type } = event.event
      const of = `child ${event.callId}`
      if (type === 'stream_chunk' || type === 'tool_progress' || type === 'step_progress')
        return { of, isNews: true, adds: true }
      return type === 'assistant_message' ? { of, isNews: false, adds: false } : null
    }
    default:
      return null
  }
}

function isPartOf(entry: Entry, stepId: string): boolean {
  if ('kind' in entry) return entry.last.stepId === stepId
  return entry.event === null || (entry.event.type === 'stream_chunk' && entry.event.stepId === stepId)
}

function lastSeqOf(entry: Entry): number {
  return 'kind' in entry ? entry.last.seq : (entry.event?.seq ?? 0)
}

function sizeOf(event: AgentEvent): number {
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
