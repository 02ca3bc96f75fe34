import { StoreError } from '../../src/core/sessions/store/store-error.js'
import type { LogRecord, SessionStore, SessionSummary } from '../../src/core/sessions/store/store.js'

/** A place where sessions are kept; every `open` is another connection to it. */
export interface Place {
  open(now?: () => number): SessionStore
  remove(): void | Promise<void>
}

/** What a test works with: a fresh place each time. */
export interface Subject {
  place: Place
  store: SessionStore
  /** What the store takes for the time, in milliseconds. */
  time: number
}

export function record(
  seq: number,
  data = JSON.stringify({ seq }),
  type: LogRecord['type'] = 'event',
): LogRecord {
  return { seq, at: 1_700_000_000_000 + seq, type, data, check: `check-${seq}` }
}

export const records = (from: number, to: number): LogRecord[] =>
  Array.from({ length: to - from + 1 }, (_, index) => record(from + index))

export const summary = (title: string): SessionSummary => ({
  title,
  state: 'RUNNING',
  reason: null,
  runs: 1,
  messages: 2,
  totalTokens: 3,
  cost: null,
})

export const asked = { holder: 'run 1', ttlMs: 60_000 }

/** The error that a call ends with, thrown or rejected. */
export async function failure(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}

export async function refusal(code: StoreError['code'], work: () => unknown): Promise<StoreError> {
  const error = await failure(work)
  expect(error).toBeInstanceOf(StoreError)
  expect(error).toMatchObject({ code })
  return error as StoreError
}
