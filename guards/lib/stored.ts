import type { NamedCalls } from './words.js'

/** These checks validate state from a store, which may be damaged. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is a plain object. Class instances would lose their class. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Whether a value is a non-negative number. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

export function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

/** Whether a value is a list of at most `most` items of one type. */
export function isListOf<Item>(
  value: unknown,
  isItem: (item: unknown) => item is Item,
  most: number,
): value is Item[] {
  return Array.isArray(value) && value.length <= most && value.every(isItem)
}

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

export function isNamedCalls(value: unknown): value is NamedCalls {
  return isRecord(value) && isText(value['tools']) && isText(value['calls']) && isCount(value['number'])
}
