import { type Span, SpanStatusCode } from '@opentelemetry/api'
import type { StepCompleted } from '../../machines/agent/announcements.js'
import { peek } from '../core/base/to-json.js'
import { limited } from './content.js'

/**
 * A span that failed: its status and, where something was thrown, an `exception` event with type and stack. `hasWords`:
 * content is captured, so the message is told, too, secrets scrubbed; a stack without it has its frames alone.
 */
export function noteFailure(span: Span, error: StepCompleted['error'], hasWords: boolean): void {
  const { cause, message = '' } = error ?? {}
  const said = hasWords ? limited(textAt(cause, 'message') || message) : ''
  span.setStatus({ code: SpanStatusCode.ERROR, ...(said !== '' && { message: said }) })
  if (cause === undefined) return
  const stack = textAt(cause, 'stack')
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  span.addEvent('exception', {
    'exception.type': textAt(cause, 'name') || 'Error',
    'exception.stacktrace': hasWords ? limited(stack) : frames.join('\n'),
    ...(said !== '' && { 'exception.message': said }),
  })
}

function textAt(value: unknown, key: string): string {
  const text = peek(value, key)
  return typeof text === 'string' ? text : ''
}
