import * as fc from 'fast-check'
import { type RecordContent, sealRecord } from '../../src/core/sessions/log/log-record.js'
import type { LogRecord } from '../../src/stores/index.js'

/** One damaged place of a value: its path, as picks of keys, and what replaces it. */
interface Damage {
  picks: readonly number[]
  by: unknown
  isRemoved: boolean
}

/** Possible JSON replacements for a value. */
const wrong = fc.oneof(
  fc.constantFrom(null, 0, -1, 1e300, '', 'x', true, [], {}, [null], [[]], { type: 'x' }, { toString: '' }),
  fc.jsonValue(),
)

export const damages: fc.Arbitrary<Damage> = fc.record({
  picks: fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 7 }),
  by: wrong,
  isRemoved: fc.boolean(),
})

/** A copy of a value with one place replaced or removed. */
export function damaged(value: unknown, { picks: [pick, ...rest], by, isRemoved }: Damage): unknown {
  if (typeof value !== 'object' || value === null || pick === undefined) return by
  const keys = Object.keys(value)
  const key = keys[pick % Math.max(1, keys.length)]
  if (key === undefined) return by
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>
  if (rest.length === 0 && isRemoved) delete copy[key]
  else copy[key] = damaged(copy[key], { picks: rest, by, isRemoved })
  return copy
}

/** A record with altered content and a valid checksum. */
export function forged({ seq, at, type, data }: LogRecord, change: (value: unknown) => unknown): LogRecord {
  const changed = change(JSON.parse(data)) as object
  if (typeof changed === 'object' && changed !== null && !Array.isArray(changed))
    return sealRecord(seq, at, { ...changed, type } as RecordContent)
  const { data: text } = sealRecord(seq, at, { type, text: changed } as unknown as RecordContent)
  return { seq, at, type, data: text.slice(8, -1), check: 'of something else' }
}

/** A log with the records in another order, some of them missing or repeated, numbered and sealed again. */
export const resealed = (records: readonly LogRecord[]): LogRecord[] =>
  records.map(({ at, type, data }, i) =>
    sealRecord(i + 1, at, { ...(JSON.parse(data) as object), type } as RecordContent),
  )
