import { optionError } from '../../base/errors.js'
import type { SessionSummary } from './store.js'
import { isTags } from './session-tags.js'

/** Maximum length of a title. Short enough for one line of a list. */
const maxTitleLength = 200

/**
 * Matches control characters and unpaired surrogates. Databases truncate or reject text with NUL or unpaired
 * surrogates, and other control characters have no place in a title.
 */
const invalidTextPattern = /[\p{Cc}\p{Cs}]/u

/**
 * Validates a title, which must be a single line. Null removes the title.
 * @throws {UsageError} `invalid_option`
 */
export function readTitle(title: unknown): string | null {
  if (title === null) return null
  const line = typeof title === 'string' ? title.replaceAll(/\s+/g, ' ').trim() : ''
  if (line !== '' && line.length <= maxTitleLength && !invalidTextPattern.test(line)) return line
  const found =
    typeof title !== 'string'
      ? `is ${title === undefined ? 'missing' : `of type ${typeof title}`}`
      : line.length > maxTitleLength
        ? `has ${line.length}`
        : line === ''
          ? 'is empty'
          : 'has a control character or an unpaired surrogate'
  throw optionError(
    `A title must be a string of 1 to ${maxTitleLength} characters, or null for the default, but this one ${found}.`,
    'title',
  )
}

/** Adds the title that was set for a session, if any, to its summary. */
export function withTitle(summary: SessionSummary | null, title: string | null): SessionSummary | null {
  return summary === null || title === null ? summary : { ...summary, title }
}

export const stringifySummary = (summary: SessionSummary | undefined): string | null =>
  summary === undefined ? null : JSON.stringify(summary)

/** Parses a stored summary. A damaged summary becomes null, so that one damaged row does not hide all sessions. */
export function parseSummary(text: unknown): SessionSummary | null {
  if (typeof text !== 'string') return null
  try {
    const summary: unknown = JSON.parse(text)
    return isSummary(summary) ? summary : null
  } catch {
    return null
  }
}

function isSummary(value: unknown): value is SessionSummary {
  if (typeof value !== 'object' || value === null) return false
  const { name, agent, tags, parent, title, state, reason, wakeAt, runs, messages, totalTokens, cost } =
    value as Record<string, unknown>
  return (
    [name, agent, parent].every((word) => word === undefined || typeof word === 'string') &&
    (tags === undefined || isTags(tags)) &&
    typeof title === 'string' &&
    [state, reason].every((word) => word === null || typeof word === 'string') &&
    [runs, messages, totalTokens].every(Number.isFinite) &&
    (wakeAt === undefined || Number.isFinite(wakeAt)) &&
    (cost === null || Number.isFinite(cost))
  )
}
