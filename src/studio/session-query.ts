import { agentStates, openStates } from '../../machines/agent/run-result.js'
import { UsageError } from '../core/base/errors.js'
import { findNearestName } from '../core/base/text.js'

/** The statuses in list order. Sessions that wait for a person come first. */
export const sessionStatuses = ['waiting', 'running', 'interrupted', 'sleeping', 'ended', 'damaged'] as const

/** States of a run that a fork can resume. */
export const forkableStates: ReadonlySet<string> = new Set(openStates)

export const isRequestEnd = ({ type, label }: { type: string; label: string }): boolean =>
  type === 'event' && /^(answer|model failed)/.test(label)

/** Whether a call failed. Calls refused by a guard or a person never ran and do not count. */
export const isFailed = ({ status }: { status: string | null }): boolean =>
  status !== null && failures.has(status)

const failures = new Set(['error', 'timeout', 'unknown_tool', 'invalid_arguments', 'denied', 'interrupted'])

/** Numbers and dates sort from greatest to smallest, text from A to Z. A leading `-` reverses the order. */
export const sessionSorts = [
  'status',
  'updated',
  'created',
  'cost',
  'tokens',
  'steps',
  'duration',
  'state',
  'agent',
  'model',
] as const
export type SessionSort = (typeof sessionSorts)[number]

export interface ListRequest {
  q: string
  sort: string
  offset: number
  limit: number
}

/** Keys whose values the page lists as filters. */
export const facetKeys = ['state', 'reason', 'tool', 'failed', 'guard', 'model', 'agent', 'tag'] as const

/** Keys of query words such as `tool:pay`. */
export const queryKeys = [...facetKeys, 'is', 'parent'] as const
export type QueryKey = (typeof queryKeys)[number]

export interface Findable {
  /** The texts in which plain words are searched, normalized by `normalizeText`. */
  texts: readonly string[]
  /** Values by key, in lower case. */
  terms: Partial<Record<QueryKey, readonly string[]>>
  row: {
    /** In USD. Null if unknown. */
    cost: number | null
    tokens: number
    steps: number | null
    /** Milliseconds from the first record to the last. */
    duration: number
    updatedAt: number
  }
}

export type SessionQuery = ReturnType<typeof readQuery>

/** Long enough to use all filters at once. */
export const longestQuery = 1_000

/**
 * Parses `lisbon tool:pay state:paused cost>0.01 >1m since:2026-11-01`. All words must match. Plain words are literal,
 * and `*` at the end of a value matches any ending.
 * @throws {UsageError} `invalid_option` for a query that is too long, or has an unknown value or an invalid date
 */
export function readQuery(text: string) {
  if (text.length > longestQuery) {
    const what = `A search can have at most ${longestQuery} characters. This one has ${text.length}.`
    throw new UsageError('invalid_option', what, 'q')
  }
  const words = splitQuery(text).map(readWord)
  const [others, statuses] = [
    words.filter(({ key }) => key !== 'is'),
    words.filter(({ key }) => key === 'is'),
  ]
  return {
    isEmpty: words.length === 0,
    parent: words.find(({ key }) => key === 'parent')?.value ?? null,
    /** Matches all words except `is:…`. */
    matches: (session: Findable): boolean => others.every(({ test }) => test(session)),
    hasStatus: (session: Findable): boolean =>
      statuses.length === 0 || statuses.some(({ test }) => test(session)),
  }
}

interface Word {
  test: (session: Findable) => boolean
  key?: QueryKey
  value?: string
}

function readWord(word: string): Word {
  const { name = '', value = '' } = readTerm(word) ?? {}
  if (name === 'since' || name === 'before') return readDate(name, value)
  const key = queryKeys.find((one) => one === name)
  if (key !== undefined && value !== '') {
    checkValue(key, value)
    return { key, value, test: createTermTest(key, value) }
  }
  const comparison = readComparison(word)
  if (comparison !== null) return { test: (session) => comparison.fits(session.row[comparison.measure]) }
  const wanted = normalizeText(word.replaceAll('"', ' ')).trim()
  return { test: ({ texts }) => texts.some((text) => text.includes(wanted)) }
}

/** A prefix of a state or status is accepted, because the reader may still be typing. */
function checkValue(key: QueryKey, value: string): void {
  const known: readonly string[] = key === 'state' ? agentStates : key === 'is' ? sessionStatuses : []
  const wanted = value.toLowerCase().replace(/\*$/, '')
  const names = known.map((name) => name.toLowerCase())
  if (names.length === 0 || names.some((name) => name.startsWith(wanted))) return
  const nearest = findNearestName(wanted, names)
  const hint = nearest === undefined ? `use one of ${names.join(', ')}.` : `did you mean ${nearest}?`
  const noun = key === 'is' ? 'status' : 'state'
  throw new UsageError('invalid_option', `Unknown ${noun} '${value.slice(0, 50)}': ${hint}`, 'q')
}

function createTermTest(key: QueryKey, value: string): Word['test'] {
  const wanted = value.toLowerCase()
  if (wanted.endsWith('*')) {
    const start = wanted.slice(0, -1)
    return ({ terms }) => terms[key]?.some((term) => term.startsWith(start)) ?? false
  }
  return ({ terms }) => terms[key]?.includes(wanted) ?? false
}

function readDate(name: 'since' | 'before', value: string): Word {
  const time = Date.parse(value)
  if (Number.isNaN(time)) {
    const what = `'${value}' is not a valid date. Example: ${name}:2026-11-01.`
    throw new UsageError('invalid_option', what, 'q')
  }
  return { test: ({ row: { updatedAt } }) => (name === 'since' ? updatedAt >= time : updatedAt < time) }
}

/** Removes invisible characters too, such as bidirectional controls. */
export function normalizeText(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\s+/g, ' ')
}

/** Formats `tag:"city=New York"`. */
export function formatTerm(key: QueryKey, value: string): string {
  return `${key}:${quoteValue(value)}`
}

function quoteValue(value: string): string {
  return /[\s"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value
}

/** The value of the first word with this prefix, such as `tool:`, or null. */
export function findTerm(text: string, start: string): string | null {
  const word = splitQuery(text).find((one) => one.startsWith(start))
  return word === undefined ? null : word.slice(start.length).replace(/^"(.*)"$/, '$1')
}

/** Null removes the words with this prefix. */
export function replaceTerm(text: string, start: string, value: string | null): string {
  const others = splitQuery(text).filter((one) => !one.startsWith(start))
  return [...others, ...(value === null ? [] : [start + quoteValue(value)])].join(' ')
}

/** A word, or a key with a value that is quoted if it has spaces, such as `tag:"city=New York"`. */
const wordPattern = /[^\s":]+:"[^"]*"|"[^"]*"|\S+/g

export function splitQuery(text: string): string[] {
  return text.match(wordPattern) ?? []
}

/** Null for words other than `tool:pay`. */
export function readTerm(word: string): { name: string; value: string } | null {
  const [, name, quoted, plain] = /^([a-z]+):(?:"([^"]*)"|(.+))$/.exec(word) ?? []
  return name === undefined ? null : { name, value: quoted ?? plain ?? '' }
}

/** A comparison such as `cost>0.01`, `tokens<=2k` or `>1s`. Without a name, it compares the duration in seconds. */
export interface Comparison {
  measure: Exclude<keyof Findable['row'], 'updatedAt'>
  /** Durations are in milliseconds. An unknown value never matches. */
  fits: (value: number | null) => boolean
}

/** Null for other words. */
export function readComparison(word: string): Comparison | null {
  const [, name, sign = '', number, unit = ''] =
    /^(cost|tokens|steps|duration)?([<>]=?)\$?(\d+(?:\.\d+)?)(ms|s|m|h|d|k)?$/.exec(word) ?? []
  if (number === undefined) return null
  const measure = (name as Comparison['measure'] | undefined) ?? 'duration'
  const limit = Number(number) * (units[unit] ?? (measure === 'duration' ? 1_000 : 1))
  return { measure, fits: (value) => value !== null && (comparisons[sign]?.(value, limit) ?? false) }
}

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, k: 1_000 }

const comparisons: Record<string, (value: number, limit: number) => boolean> = {
  '>': (value, limit) => value > limit,
  '<': (value, limit) => value < limit,
  '>=': (value, limit) => value >= limit,
  '<=': (value, limit) => value <= limit,
}
