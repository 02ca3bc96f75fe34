import { type Span, SpanStatusCode } from '@opentelemetry/api'
import type { StepCompleted } from '../../machines/agent/announcements.js'
import { readProperty } from '../core/base/json.js'
import { limitContent } from './span-content.js'

/**
 * A span that failed: its status and, where something was thrown, an `exception` event with type and stack. `hasWords`:
 * content is captured, so the message is told, too, secrets scrubbed; a stack without it has its frames alone.
 */
export function recordFailure(span: Span, error: StepCompleted['error'], hasWords: boolean): void {
  const { cause, message = '' } = error ?? {}
  const said = hasWords ? limitContent(readText(cause, 'message') || message) : ''
  span.setStatus({ code: SpanStatusCode.ERROR, ...(said !== '' && { message: said }) })
  if (cause === undefined) return
  const stack = readText(cause, 'stack')
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  span.addEvent('exception', {
    'exception.type': readText(cause, 'name') || 'Error',
    'exception.stacktrace': hasWords ? limitContent(stack) : frames.join('\n'),
    ...(said !== '' && { 'exception.message': said }),
  })
}

function readText(value: unknown, key: string): string {
  const text = readProperty(value, key)
  return typeof text === 'string' ? text : ''
}
