import type { FailureKind, ModelFailure } from '../../../machines/agent/response.js'
import { checkedUsage } from './checked-usage.js'

const kinds: readonly FailureKind[] = ['transient', 'rate_limit', 'incomplete', 'context_overflow', 'fatal']

/** A failure as the loop relies on it, whoever wrote the provider: every field is there and is what it says. */
export function checkedFailure(failure: ModelFailure): ModelFailure {
  const given: Partial<Record<keyof ModelFailure, unknown>> = failure ?? {}
  return {
    kind: kinds.find((kind) => kind === given.kind) ?? 'fatal',
    code: textOf(given.code) || 'unknown',
    message: textOf(given.message) || 'The provider failed with an error without words.',
    status: numberOf(given.status),
    retryAfterMs: numberOf(given.retryAfterMs),
    partialText: textOf(given.partialText),
    usage: checkedUsage(given.usage),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}
