import { optionsRule, expectArgument, objectRule } from '../core/base/values.js'
import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AnyRun } from '../web/live-runs.js'
import { type ReplayReader, ReplayBuffer } from '../web/replay-buffer.js'
import { type FrameSource, formatSseFrame, createSseResponse } from '../web/sse.js'

export interface EventStreamOptions {
  /** The id of the last event that the page has: `EventSource` sends it when it reconnects. */
  lastEventId?: string | null
}

const bufferByRun = new WeakMap<AnyRun, ReplayBuffer>()

/**
 * Sends the events of a run as server-sent events, each as JSON with its `id`, up to the run's end, rests included. A page
 * that reconnects with `Last-Event-ID` gets the events that it missed (missed text as one chunk), or 204 when there are
 * none, so that it stops asking. Call it right after `run()`: earlier events are lost.
 *
 * `source` may also be any events, such as those of `agent.watch`, which begins at its option `after`.
 *
 * @example
 * const runs = new Map([['1', agent.run('What changed?')]])
 * const handler = (request: Request): Response => {
 *   const run = runs.get(new URL(request.url).searchParams.get('run') ?? '')
 *   if (!run) return new Response(null, { status: 404 })
 *   return toEventStreamResponse(run, { lastEventId: request.headers.get('last-event-id') })
 * }
 */
export function toEventStreamResponse(
  source: AnyRun | AsyncIterable<AgentEvent>,
  options: EventStreamOptions = {},
): Response {
  expectArgument(
    'toEventStreamResponse(source)',
    source,
    objectRule([Symbol.asyncIterator], 'a run, or what agent.watch(…) returned'),
  )
  expectArgument('toEventStreamResponse(source, options)', options, optionsRule)
  const { lastEventId } = options
  if (!isRun(source)) return createSseResponse(createEventFrames(source))
  const buffer = bufferByRun.get(source) ?? followRun(source)
  const reader = buffer.createReader(parseLastSeq(source, lastEventId ?? null))
  const first = reader.takeEvents()
  if (first === null) return new Response(null, { status: 204 })
  return createSseResponse(createRunFrames(reader, first))
}

function isRun(source: AnyRun | AsyncIterable<AgentEvent>): source is AnyRun {
  return 'events$' in source
}

function followRun(run: AnyRun): ReplayBuffer {
  const buffer = new ReplayBuffer()
  bufferByRun.set(run, buffer)
  run.events$.subscribe({
    next: (event) => {
      buffer.push(event)
    },
    // A refused run has one event, which says so.
    error: () => {
      buffer.end()
    },
    complete: () => {
      buffer.end()
    },
  })
  return buffer
}

/** The number of the event with this id; the beginning for an id that is not of this run. */
function parseLastSeq(run: AnyRun, id: string | null): number | 'beginning' {
  const seq = Number(/:(\d+)$/.exec(id ?? '')?.[1])
  return id !== null && id.startsWith(run.id) && Number.isSafeInteger(seq) ? seq : 'beginning'
}

function createRunFrames(reader: ReplayReader, first: AgentEvent[]): FrameSource {
  let taken: AgentEvent[] | null = first
  return {
    next: async () => {
      while (taken !== null && taken.length === 0) {
        taken = reader.takeEvents()
        if (taken?.length === 0) await reader.waitForEvents()
      }
      if (taken === null) return null
      const frames = taken.map(formatFrame).join('')
      taken = []
      return frames
    },
  }
}

function createEventFrames(source: AsyncIterable<AgentEvent>): FrameSource {
  const events = source[Symbol.asyncIterator]()
  return {
    next: async () => {
      const read = await events.next()
      return read.done ? null : formatFrame(read.value)
    },
    cancel: () => void events.return?.()?.catch(() => undefined),
  }
}

const formatFrame = (event: AgentEvent): string => formatSseFrame(event, event.id)
