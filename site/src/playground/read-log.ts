import { type RecordContent, sealRecord } from '../../../src/core/sessions/log/log-record.js'
import type { LogRecord } from '../../../src/core/sessions/store/store.js'

const maxLog = 20_000_000

/**
 * Parses the records of a log, from the lines of `statewright sessions show ID --json`, a JSON list of them, or the result of
 * `store.read`.
 *
 * @throws Error with a readable message and the line
 */
export function readLog(text: string): LogRecord[] {
  if (text.length > maxLog) throw new Error('This log is longer than 20 MB. Open it in the studio.')
  const trimmed = text.trim()
  if (trimmed === '') throw new Error('Paste the output of statewright sessions show ID --json.')
  const values = trimmed.startsWith('[')
    ? (parse(trimmed, 'The text') as unknown[])
    : trimmed.split('\n').map((line, at) => parse(line, `Line ${at + 1}`))
  return values.map((value, at) => toRecord(value, at + 1))
}

function parse(json: string, where: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw new Error(`${where} is not valid JSON.`)
  }
}

function toRecord(value: unknown, place: number): LogRecord {
  const { seq, at, type, data, check: _check, ...rest } = (value ?? {}) as Partial<LogRecord>
  if (typeof seq !== 'number' || typeof at !== 'number' || typeof type !== 'string')
    throw new Error(`Record ${place} does not have seq, at and type, so this is not a Statewright log.`)
  // Pasted logs are often edited, so their checksums are ignored.
  const content = typeof data === 'string' ? (parse(data, `The data of record ${place}`) as object) : rest
  return sealRecord(seq, at, { type, ...content } as RecordContent)
}
