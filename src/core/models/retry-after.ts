import { asObject } from './as-json.js'

/**
 * How long the provider asks us to wait, in milliseconds: `Retry-After-Ms` before `Retry-After`, which is seconds or
 * an HTTP date. Null when it asks for nothing, or for something that is no time. `headers` is a `Headers` or a plain
 * object.
 */
export function parseRetryAfter(headers: unknown, now: number): number | null {
  const ms = parseAmount(getHeader(headers, 'retry-after-ms'))
  if (ms !== null && ms > 0) return Math.ceil(ms)
  const text = getHeader(headers, 'retry-after')
  const seconds = parseAmount(text)
  if (seconds !== null) return Math.ceil(seconds * 1000)
  // Date.parse makes a date of almost anything.
  const date = /\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? ms : Math.max(0, date - now)
}

function parseAmount(text: string): number | null {
  return /^\d{1,15}(\.\d+)?$/.test(text) ? Number(text) : null
}

/** A header by its name in lower case, '' when it is not there. `headers` is a `Headers` or a plain object. */
export function getHeader(headers: unknown, name: string): string {
  if (typeof headers !== 'object' || headers === null) return ''
  if ('get' in headers && typeof headers.get === 'function') {
    const value: unknown = headers.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
  const entry = Object.entries(asObject(headers) ?? {}).find(([key]) => key.toLowerCase() === name)
  return typeof entry?.[1] === 'string' || typeof entry?.[1] === 'number' ? String(entry[1]).trim() : ''
}

/** What a provider counts. */
const rateLimits = ['requests', 'tokens'] as const

/**
 * How long until what is used up may be used again, in milliseconds, by the headers `x-ratelimit-remaining-requests` and
 * `-reset-requests`, and the same of tokens: `1s`, `6m0s`, `120ms`, or seconds. Null where no header says that something is
 * used up.
 */
export function parseRateLimitReset(headers: unknown): number | null {
  const waits = rateLimits.flatMap((name) => {
    const remaining = getHeader(headers, `x-ratelimit-remaining-${name}`)
    const resetMs = parseDuration(getHeader(headers, `x-ratelimit-reset-${name}`))
    return remaining !== '' && Number(remaining) <= 0 && resetMs !== null ? [resetMs] : []
  })
  return waits.length === 0 ? null : Math.max(...waits)
}

const unitMs: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** `1h2m3.5s`, or a number of seconds. */
function parseDuration(text: string): number | null {
  const seconds = parseAmount(text)
  if (seconds !== null) return Math.ceil(seconds * 1000)
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|[dhms]))+$/.test(text)) return null
  let total = 0
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|[dhms])/g))
    total += Number(amount) * (unitMs[unit ?? ''] ?? 0)
  return Math.ceil(total)
}
