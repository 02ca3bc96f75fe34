import { memoize } from '../core/base/values.js'
import { scrubSecrets } from '../core/shields/secrets.js'
import type { ContentPart, MediaPart, Message, ToolCall } from '../../machines/agent/messages.js'
import type { ModelStepResponse, StepCompleted } from '../../machines/agent/announcements.js'
import type { ModelRequest } from '../core/models/provider.js'
import { type Span, SpanStatusCode } from '@opentelemetry/api'
import { readText } from '../core/base/json.js'

// Formats prompts and answers for spans. `createRequestSpans` decides whether spans contain them (`captureContent`).

/** The maximum length of one attribute in characters. A marker replaces the parts beyond it. */
const maxContentChars = 32_000

/** A part of a message, as defined by the GenAI conventions. Files are named, not included. */
type Part =
  | { type: 'text'; content: string }
  | { type: 'tool_call'; id: string; name: string; arguments: string }
  | { type: 'tool_call_response'; id: string; response: string }
  | { type: 'file'; modality: 'image' | 'audio' | 'document' }

interface SpanMessage {
  role: Message['role']
  parts: Part[]
}

/** The newest parts of the prompt that fit, without secrets. */
export function formatInputMessages({ messages, nudges }: ModelRequest): string {
  const riding = nudges.map((content) => measureParts({ role: 'user', parts: [toTextPart(content)] }))
  return fitMessages([...messages.map(measureMessage), ...riding])
}

export function formatInstructions({ instructions }: ModelRequest): string | undefined {
  return instructions === null ? undefined : JSON.stringify([toTextPart(limitContent(instructions))])
}

/** The answer, without content that shields have not cleared. */
export function formatOutputMessages(response: ModelStepResponse): string | undefined {
  const { text: words, refusal, toolCalls } = response
  const parts = [...toTextParts([words, refusal]), ...(toolCalls ?? []).map(toCallPart)]
  return parts.length === 0 ? undefined : fitMessages([measureParts({ role: 'assistant', parts })])
}

/** The text, or a marker if it is too long. */
export function limitContent(content: string): string {
  return content.length > maxContentChars ? formatOmission(1, content.length) : scrubSecrets(content)
}

function toTextPart(content: string): Part {
  return { type: 'text', content: scrubSecrets(content) }
}

function toTextParts(texts: readonly (string | null | undefined)[]): Part[] {
  return texts.flatMap((text) => (text ? [toTextPart(text)] : []))
}

function toCallPart({ id, function: { name, arguments: args } }: ToolCall): Part {
  return { type: 'tool_call', id, name, arguments: scrubSecrets(args) }
}

function toSpanMessage(message: Message): SpanMessage {
  const { role } = message
  switch (message.role) {
    case 'tool': {
      const { tool_call_id: id, content, media = [] } = message
      return {
        role,
        parts: [
          { type: 'tool_call_response', id, response: scrubSecrets(content) },
          ...media.map(toFilePart),
        ],
      }
    }
    case 'assistant': {
      const { content, refusal, tool_calls: calls = [], media = [] } = message
      const words = toTextParts([content, refusal])
      return { role, parts: [...words, ...media.map(toFilePart), ...calls.map(toCallPart)] }
    }
    default: {
      const { content } = message
      return { role, parts: typeof content === 'string' ? [toTextPart(content)] : content.map(toPart) }
    }
  }
}

function toPart(part: ContentPart): Part {
  return part.type === 'text' ? toTextPart(part.text) : toFilePart(part)
}

function toFilePart({ type }: MediaPart): Part {
  const modality = type === 'image_url' ? 'image' : type === 'input_audio' ? 'audio' : 'document'
  return { type: 'file', modality }
}

interface MeasuredMessage {
  role: Message['role']
  parts: readonly string[]
}

function measureParts({ role, parts }: SpanMessage): MeasuredMessage {
  return { role, parts: parts.map((part) => JSON.stringify(part)) }
}

/** Each request repeats all earlier messages, and messages never change, so each is formatted once. */
const measureMessage = memoize((message: Message) => measureParts(toSpanMessage(message)))

/** Starts from the newest part. A marker replaces the parts that do not fit. */
function fitMessages(messages: readonly MeasuredMessage[]): string {
  let left = maxContentChars
  let [parts, characters] = [0, 0]
  const entries: string[] = []
  const keep = (role: Message['role'], fits: readonly string[]) =>
    entries.push(`{"role":${JSON.stringify(role)},"parts":[${fits.toReversed().join(',')}]}`)
  for (const { role, parts: all } of messages.toReversed()) {
    const fits: string[] = []
    for (const part of all.toReversed()) {
      if (part.length <= left) {
        left -= part.length
        fits.push(part)
      } else {
        parts += 1
        characters += part.length
      }
    }
    if (fits.length > 0) keep(role, fits)
  }
  if (parts > 0)
    keep('system', [JSON.stringify({ type: 'text', content: formatOmission(parts, characters) })])
  return `[${entries.toReversed().join(',')}]`
}

function formatOmission(parts: number, characters: number): string {
  const what = parts === 1 ? 'a part' : `${parts} parts`
  return `[statewright: ${what} of ${characters} characters omitted because the limit is ${maxContentChars}]`
}

/**
 * Marks a span as failed, with its status and an `exception` event with type and stack for a thrown error. `hasWords`
 * means that content is captured, so the message is included without secrets. Otherwise the stack has only its frames.
 */
export function recordFailure(span: Span, error: StepCompleted['error'], hasWords: boolean): void {
  const { cause, message = '' } = error ?? {}
  const description = hasWords ? limitContent(readText(cause, 'message') || message) : ''
  span.setStatus({ code: SpanStatusCode.ERROR, ...(description !== '' && { message: description }) })
  if (cause === undefined) return
  const stack = readText(cause, 'stack')
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  span.addEvent('exception', {
    'exception.type': readText(cause, 'name') || 'Error',
    'exception.stacktrace': hasWords ? limitContent(stack) : frames.join('\n'),
    ...(description !== '' && { 'exception.message': description }),
  })
}
