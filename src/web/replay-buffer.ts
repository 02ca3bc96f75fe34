import { getOrCreate } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'

type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

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

/** One event, or null if later subscribers no longer need it, or a text. */
type Entry = { event: AgentEvent | null } | TextEntry

const maxReadChars = 64_000

export type ReplayBuffer = ReturnType<typeof createReplayBuffer>

export type ReplayReader = ReturnType<ReplayBuffer['createReader']>

/**
 * Buffers the events of a run up to its next rest. Late readers start at the beginning, and slow readers do not delay
 * others. Text chunks are merged. Reset text, outdated progress and the argument chunks of complete calls are dropped.
 */
export function createReplayBuffer() {
  const entries: Entry[] = []
  let isOver = false
  let failure: { error: unknown } | null = null
  /** The entries of the current step's chunks and calls. A reset discards them. */
  let stepChunks: { stepId: string; at: number[] } = { stepId: '', at: [] }
  /** Entries that a later event replaces: progress, streamed arguments, and the text of sub-agents. */
  const transients = new Map<string, number[]>()
  let waiters: (() => void)[] = []

  function notifyReaders(): void {
    const notified = waiters
    waiters = []
    for (const resolve of notified) resolve()
  }

  function addPart(event: Chunk | CallDelta): void {
    const { stepId } = event
    if (stepChunks.stepId !== stepId) stepChunks = { stepId, at: [] }
    const isChunk = event.type === 'stream_chunk'
    const { text, reasoning = '', reset, finished } = isChunk ? event : { text: event.delta }
    if (reset) discard(stepChunks.at)
    const kindOfChunk = text === '' ? 'reasoning' : 'text'
    const kind = isChunk ? kindOfChunk : 'arguments'
    const last = entries.at(-1)
    if (reset || finished || (text !== '' && reasoning !== '')) append({ event })
    else if (last && 'kind' in last && last.kind === kind && belongsTo(last, event)) {
      last.chunks.push(text + reasoning)
      last.last = event
      return
    } else append({ last: event, firstSeq: event.seq, kind, chunks: [text + reasoning], isJoined: false })
    stepChunks.at.push(entries.length - 1)
    if (!isChunk) addTransient(getCallKey(event.callId))
  }

  /** Progress replaces earlier progress, and a complete message or call replaces its chunks. */
  function addEvent(event: AgentEvent): void {
    append({ event })
    switch (event.type) {
      case 'tool_progress':
        return replace(`progress ${event.callId}`)
      case 'step_progress':
        return replace(`step ${event.stepId}`)
      case 'tool_call':
        return discardAll(getCallKey(event.call.id))
      case 'child_event': {
        const { type } = event.event
        const key = `child ${event.callId}`
        if (liveTypes.has(type)) addTransient(key)
        else if (type === 'assistant_message') discardAll(key)
      }
    }
  }

  /** Lets a later event replace the last entry. */
  function addTransient(key: string): void {
    getOrCreate(transients, key, () => []).push(entries.length - 1)
  }

  function replace(key: string): void {
    discardAll(key)
    addTransient(key)
  }

  const discardAll = (key: string): void => discard(transients.get(key) ?? [])

  function discard(at: number[]): void {
    for (const i of at) entries[i] = { event: null }
    at.length = 0
  }

  function append(entry: Entry): void {
    joinText()
    entries.push(entry)
  }

  function joinText(): void {
    const last = entries.at(-1)
    if (!last || !('kind' in last) || last.isJoined) return
    last.chunks = [last.chunks.join('')]
    last.isJoined = true
  }

  function end(): void {
    isOver = true
    joinText()
    notifyReaders()
  }

  /** Creates a reader that starts at the beginning, with the next event, or after the event with this `seq`. */
  function createReader(from: 'beginning' | 'now' | number = 'beginning') {
    let at = 0
    /** Number of chunks and characters read from the current text entry. */
    let chunksRead = 0
    let charsRead = 0
    /** The step whose text is repeated. Its first chunk resets the reader's text. */
    let restatedStep: string | null = null

    function readText({ chunks, kind, last, isJoined }: TextEntry): AgentEvent | null {
      const isFirstRead = chunksRead === 0
      const text = isJoined ? (chunks[0] as string).slice(charsRead) : chunks.slice(chunksRead).join('')
      chunksRead = chunks.length
      charsRead += text.length
      // The first chunk of a call contains only its name.
      if (text === '' && !(kind === 'arguments' && isFirstRead)) return null
      // Readers that keep up receive the original chunk.
      if (last.type === 'tool_call_delta') return text === last.delta ? last : { ...last, delta: text }
      if (text === (kind === 'text' ? last.text : last.reasoning)) return last
      const { reasoning: _, ...rest } = last
      return kind === 'text' ? { ...rest, text } : { ...rest, text: '', reasoning: text }
    }

    function restate(event: AgentEvent): AgentEvent[] {
      if (event.type !== 'stream_chunk' && event.type !== 'tool_call_delta') return [event]
      if (event.stepId !== restatedStep) return [event]
      restatedStep = null
      if (event.type === 'stream_chunk') return [{ ...event, reset: true }]
      const { callId: _id, name: _name, index: _index, delta: _delta, ...rest } = event
      return [{ ...rest, type: 'stream_chunk', text: '', finished: false, reset: true }, event]
    }

    function skipAll(): void {
      const last = entries.at(-1)
      at = entries.length
      if (!last || !('kind' in last) || last.isJoined) return
      // More chunks of this text may follow.
      at -= 1
      chunksRead = last.chunks.length
      charsRead = last.chunks.join('').length
    }

    /** Skips to the event after this one. In the middle of a text, repeats the step from its start. */
    function skipTo(seq: number): void {
      while (at < entries.length && getLastSeq(entries[at] as Entry) <= seq) at += 1
      const entry = entries[at]
      if (!entry) return skipAll()
      if (!('kind' in entry) || entry.firstSeq > seq) return
      restatedStep = entry.last.stepId
      while (at > 0 && isPartOfStep(entries[at - 1] as Entry, entry.last.stepId)) at -= 1
    }

    /** Returns the events since the last call, up to about 64,000 characters, or null after the end. */
    function takeEvents(): AgentEvent[] | null {
      const events: AgentEvent[] = []
      let size = 0
      while (at < entries.length && size < maxReadChars) {
        const entry = entries[at] as Entry
        const event = 'kind' in entry ? readText(entry) : entry.event
        if (event) {
          events.push(...restate(event))
          size += estimateSize(event)
        }
        if ('kind' in entry && at === entries.length - 1 && !isOver) break
        at += 1
        chunksRead = 0
        charsRead = 0
      }
      if (events.length > 0 || !isOver || at < entries.length) return events
      if (failure) throw failure.error
      return null
    }

    if (typeof from === 'number') skipTo(from)
    if (from === 'now') skipAll()
    return {
      takeEvents,
      async *[Symbol.asyncIterator](): AsyncGenerator<AgentEvent[], void> {
        for (let events = takeEvents(); events !== null; events = takeEvents()) {
          if (events.length > 0) yield events
          else await new Promise<void>((resolve) => void waiters.push(resolve))
        }
      },
    }
  }

  return {
    entries,
    get isOver() {
      return isOver
    },
    push(event: AgentEvent): void {
      if (isOver) return
      if (event.type === 'stream_chunk' || event.type === 'tool_call_delta') addPart(event)
      else addEvent(event)
      notifyReaders()
    },
    end,
    /** Ends the buffer with an error that readers receive after the last event. */
    fail(error: unknown): void {
      failure = { error }
      end()
    },
    createReader,
  }
}

function belongsTo({ last }: TextEntry, event: Chunk | CallDelta): boolean {
  const isSameCall =
    event.type === 'stream_chunk' || (last.type === 'tool_call_delta' && last.callId === event.callId)
  return isSameCall && last.stepId === event.stepId && last.attempt === event.attempt
}

const getCallKey = (callId: string): string => `call ${callId}`

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
