import { isSpanContextValid, type SpanContext } from '@opentelemetry/api'

const traceparentPattern = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** A span as W3C's `traceparent` names it; null when the span is not recorded. */
export function formatLink(span: SpanContext): string | null {
  if (!isSpanContextValid(span)) return null
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0')
  return `00-${span.traceId}-${span.spanId}-${flags}`
}

/** The span that is so named; null for any other text. */
export function parseLink(link: string | null): SpanContext | null {
  const [, traceId, spanId, flags] = (link !== null && traceparentPattern.exec(link)) || []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  const span = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(span) ? span : null
}
