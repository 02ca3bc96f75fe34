import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import type { PendingCall } from '../../../machines/agent/run-result.js'
import { formatResult } from '../tools/tool-content.js'

/** The event for the result of a client's call. An Error is an error result. */
export function toToolOutputEvent(
  { callId, fingerprint, messageId }: Pick<PendingCall, 'callId' | 'fingerprint' | 'messageId'>,
  value: unknown,
  { maxChars, isError = value instanceof Error }: { maxChars: number; isError?: boolean },
): Extract<ControlEvent, { type: 'TOOL_OUTPUT' }> {
  const { content, media } = formatResult(value instanceof Error ? value.message : value, maxChars)
  return {
    type: 'TOOL_OUTPUT',
    callId,
    content,
    fingerprint,
    ...(messageId !== undefined && { messageId }),
    ...(media && { media }),
    ...(isError && { isError }),
  }
}

/** An output as `run.addToolOutput` takes it: one that failed is an Error, whatever it says. */
export function toOutputValue({ value, isError }: { value: unknown; isError?: boolean }): unknown {
  if (isError !== true || value instanceof Error) return value
  return new Error(formatResult(value, Infinity).content)
}
