import { optionError } from '../../base/errors.js'
import { parseJsonOr } from '../../base/json.js'
import { isObject } from '../../base/values.js'
import type { SessionSummary } from './store.js'
import { isTags } from './session-tags.js'

/** Maximum length of a title. Short enough for one line of a list. */
const maxTitleLength = 200

/** Control characters have no place in a title, and databases truncate or reject NUL and unpaired surrogates. */
const invalidTextPattern = /[\p{Cc}\p{Cs}]/u

/** @throws {UsageError} `invalid_option` */
export function readTitle(title: unknown): string | null {
  if (title === null) return null
  const line = typeof title === 'string' ? title.replaceAll(/\s+/g, ' ').trim() : ''
  if (line !== '' && line.length <= maxTitleLength && !invalidTextPattern.test(line)) return line
  const message = `A title must be a string of 1 to ${maxTitleLength} characters, or null for the default, but this one ${findFault(title, line)}.`
  throw optionError(message, 'title')
}

function findFault(title: unknown, line: string): string {
  if (title === undefined) return 'is missing'
  if (typeof title !== 'string') return `is of type ${typeof title}`
  if (line === '') return 'is empty'
  return line.length > maxTitleLength
    ? `has ${line.length}`
    : 'has a control character or an unpaired surrogate'
}

export function withTitle(summary: SessionSummary | null, title: string | null): SessionSummary | null {
  return summary === null || title === null ? summary : { ...summary, title }
}

export const stringifySummary = (summary: SessionSummary | undefined): string | null =>
  summary === undefined ? null : JSON.stringify(summary)

/** A damaged summary becomes null, so that one damaged row does not hide all sessions. */
export function parseSummary(text: unknown): SessionSummary | null {
  const summary = typeof text === 'string' ? parseJsonOr(text, null) : null
  return isSummary(summary) ? summary : null
}

function isSummary(value: unknown): value is SessionSummary {
  if (!isObject(value)) return false
  const { tags, title, state, reason, wakeAt, runs, messages, totalTokens, cost } = value
  const { name, agent, version, parent, value: machineState } = value
  return (
    [name, agent, version, parent, machineState].every(
      (word) => word === undefined || typeof word === 'string',
    ) &&
    (tags === undefined || isTags(tags)) &&
    typeof title === 'string' &&
    [state, reason].every((word) => word === null || typeof word === 'string') &&
    [runs, messages, totalTokens].every(Number.isFinite) &&
    (wakeAt === undefined || Number.isFinite(wakeAt)) &&
    (cost === null || Number.isFinite(cost))
  )
}
