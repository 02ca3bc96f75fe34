import type { Annotation, ContentPart, MediaPart } from '../../machines/agent/messages.js'
import type { AgentState, Reason, TurnEnd } from '../../machines/agent/run-result.js'
import type { ResultStatus } from '../../machines/agent/batch-calls.js'
import { getSentence } from '../web/exposure.js'
import type { FinishReason, Protocol } from './ui-message-chunks.js'

/** The arguments of a call as a JSON value, or as text when they are not JSON. */
export function parseArguments(text: string): { input: unknown; isJson: boolean } {
  try {
    return { input: JSON.parse(text), isJson: true }
  } catch {
    return { input: text, isJson: false }
  }
}

/** The output of a tool: a JSON object or list is parsed, anything else stays text. */
export function parseOutput(content: string): unknown {
  if (!/^\s*[[{]/.test(content)) return content
  const { input, isJson } = parseArguments(content)
  return isJson ? input : content
}

/** How a call ended, in the terms of pages: rejected, failed, or with an output. */
export function toOutputState(status: ResultStatus): 'available' | 'denied' | 'error' {
  if (status === 'ok') return 'available'
  return status === 'rejected' ? 'denied' : 'error'
}

export interface FilePart {
  type: 'file'
  url: string
  mediaType: string
  filename?: string
}

/** The media that a page can show: those with an address. */
export function toFileParts(media: readonly MediaPart[] = []): FilePart[] {
  return media
    .flatMap((part) => toFilePart(part) ?? [])
    .filter(({ url }) => isWebAddress(url) || /^data:/i.test(url))
}

/** Only http(s) addresses: a page makes a link of it, which must not run code. */
const isWebAddress = (url: string): boolean => /^https?:/i.test(url)

function toFilePart(part: MediaPart): FilePart | null {
  if (part.type === 'image_url') {
    const { url } = part.image_url
    return { type: 'file', url, mediaType: parseMediaType(url) ?? 'image/*' }
  }
  if (part.type === 'input_audio') {
    const { data, format } = part.input_audio
    const mediaType = format === 'mp3' ? 'audio/mpeg' : 'audio/wav'
    return { type: 'file', url: `data:${mediaType};base64,${data}`, mediaType }
  }
  const { file_data: url, filename } = part.file
  if (url === undefined) return null
  const named = filename === undefined ? {} : { filename }
  return { type: 'file', url, mediaType: parseMediaType(url) ?? 'application/octet-stream', ...named }
}

function parseMediaType(url: string): string | undefined {
  return /^data:([^;,]+)[;,]/.exec(url)?.[1]
}

/** The content of a user message as parts of a page message. */
export function toUserParts(
  content: string | readonly ContentPart[],
): ({ type: 'text'; text: string } | FilePart)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.flatMap((part): ({ type: 'text'; text: string } | FilePart)[] =>
    part.type === 'text' ? [{ type: 'text', text: part.text }] : toFileParts([part]),
  )
}

export type SourcePart =
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; mediaType: string; title: string; filename?: string }

/** The sources of an answer. */
export function toSourceParts(messageId: string, annotations: readonly Annotation[] = []): SourcePart[] {
  return annotations.flatMap((source, i): SourcePart[] => {
    const sourceId = `${messageId}.source.${i}`
    if (source.type === 'url_citation') {
      const { url, title } = source.url_citation
      if (!isWebAddress(url)) return []
      return [{ type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }]
    }
    const { filename, title = filename } = source.file_citation
    return [{ type: 'source-document', sourceId, mediaType: 'application/octet-stream', title, filename }]
  })
}

/** A memory snippet as a source. */
export function toMemorySource(eventId: string, i: number, title: string): SourcePart {
  return { type: 'source-document', sourceId: `${eventId}.found.${i}`, mediaType: 'text/plain', title }
}

/** Maps the state and reason of a rest to the finish reason of the message. */
export function toFinishReason(state: AgentState, reason: Reason | null, protocol: Protocol): FinishReason {
  const interrupted = protocol === 'v6' ? 'other' : 'interrupted'
  switch (state) {
    case 'COMPLETED':
      if (reason === 'max_tokens') return 'length'
      return reason === 'content_filter' ? 'content-filter' : 'stop'
    case 'WAITING_FOR_INPUT':
      return reason === 'message' ? 'stop' : 'tool-calls'
    case 'BLOCKED':
      return 'content-filter'
    default:
      return interrupted
  }
}

/** The end of a run in the message that it answers with. A later end of the same message replaces it. */
export interface EndPart {
  type: 'data-statewright'
  id: 'run_ended'
  data: {
    type: 'run_ended'
    state: AgentState
    reason: Reason
    /** Absent for a paused run that has continued. */
    message?: string
    wakeAt?: number
  }
}

export function toEndPart({ state, reason, error, wakeAt }: Omit<TurnEnd, 'messageId'>): EndPart {
  const isExpected = state === 'WAITING_FOR_INPUT' || reason === 'end_turn'
  const message = isExpected ? undefined : (error?.message ?? getSentence(reason))
  return {
    type: 'data-statewright',
    id: 'run_ended',
    data: {
      type: 'run_ended',
      state,
      reason,
      ...(message !== undefined && { message }),
      ...(wakeAt !== undefined && { wakeAt }),
    },
  }
}
