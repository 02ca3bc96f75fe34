import type { ControlEvent } from '../../../machines/agent/machine-events.js'
import type { PendingCall } from '../../../machines/agent/run-result.js'
import { formatResult } from '../tools/tool-content.js'
import { readAnswer } from '../sessions/answer-reader.js'

/**
 * The event for the result of a client's call, or for what a person answers to an elicitation. An Error is an error result.
 * @throws {UsageError} `invalid_answer`
 */
export function toToolOutputEvent(
  { callId, fingerprint, messageId, elicitation }: PendingCall,
  value: unknown,
  { maxChars, isError = value instanceof Error }: { maxChars: number; isError?: boolean },
): Extract<ControlEvent, { type: 'TOOL_OUTPUT' }> {
  const { content, media } = elicitation
    ? { content: readAnswer(elicitation, value), media: undefined }
    : formatResult(value instanceof Error ? value.message : value, maxChars)
  return {
    type: 'TOOL_OUTPUT',
    callId,
    content,
    fingerprint,
    ...(messageId !== undefined && { messageId }),
    ...(media && { media }),
    ...(isError && !elicitation && { isError }),
  }
}

/** An output as `run.addToolOutput` takes it: one that failed is an Error, whatever it says. */
export function toOutputValue({ value, isError }: { value: unknown; isError?: boolean }): unknown {
  if (isError !== true || value instanceof Error) return value
  return new Error(formatResult(value, Infinity).content)
}
