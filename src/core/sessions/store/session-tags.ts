import { isPlain } from '../../../../guards/lib/stored.js'
import { optionError } from '../../base/errors.js'

/** NUL and unpaired surrogates, with which databases silently truncate or change text. Valid JSON escapes them. */
export const invalidTextPattern = /[\0\p{Cs}]/u

/**
 * Labels for finding sessions. A session has at most 20 tags, with names of 1 to 64 characters and values of 1 to 200
 * characters. Text in any script is stored unchanged and is case-sensitive.
 * @example const tags: SessionTags = { user: 'ann', plan: 'pro' }
 */
export type SessionTags = Readonly<Record<string, string>>

const maxTags = 20
const maxNameLength = 64
export const maxValueLength = 200

/** Why these tags are invalid, phrased to complete a sentence, or null. */
export function findTagsFault(tags: unknown): string | null {
  if (!isPlain(tags)) return 'must be an object with string values, such as { user: "ann" }'
  const entries = Object.entries(tags)
  if (entries.length > maxTags) return `has ${entries.length} tags, but the maximum is ${maxTags}`
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, maxNameLength))
    if (!isText(name, maxNameLength))
      return `has the name ${shown}, but a name must be a string of 1 to ${maxNameLength} characters`
    if (!isText(value, maxValueLength))
      return `has an invalid value for ${shown}, which must be a string of 1 to ${maxValueLength} characters`
  }
  return null
}

/** @throws {UsageError} `invalid_option` for invalid tags, or too many */
export function mergeTags(current: SessionTags, added: SessionTags, sessionId: string): SessionTags {
  const fault = findTagsFault(added)
  if (fault !== null) throw optionError(`tags ${fault}.`, 'tags')
  const merged = { ...current, ...added }
  const faultOfAll = findTagsFault(merged)
  if (faultOfAll !== null) throw optionError(`With these tags, session '${sessionId}' ${faultOfAll}.`, 'tags')
  return merged
}

export const hasTags = (tags: SessionTags): boolean => Object.keys(tags).length > 0

/** Whether a stored value has the type of tags. */
export const isTags = (value: unknown): value is SessionTags =>
  typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string')

const isText = (value: unknown, maxLength: number): boolean =>
  typeof value === 'string' &&
  value.length >= 1 &&
  value.length <= maxLength &&
  !invalidTextPattern.test(value)
