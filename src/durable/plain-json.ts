import { valueOr } from '../core/base/maybe-promise.js'
import { describeError, UsageError } from '../core/base/errors.js'

/**
 * Copies undefined, or a value that JSON keeps unchanged. Refuses a value that would be different after a restart.
 * Undefined properties are left out.
 * @throws {UsageError} `not_json`, naming the path
 */
export function copyJson<Value>(value: Value, path: string): Value {
  try {
    return (value === undefined ? value : copy(value, path, new Set(), { left: mostValues })) as Value
  } catch (error) {
    if (error instanceof UsageError) throw error
    // A getter throws, or the value is nested too deeply.
    throw new UsageError('not_json', `${path} cannot be read: ${describeError(error)}`, path, {
      cause: error,
    })
  }
}

/** The maximum depth. Deeper values overflow the stack of programs that parse or compare them. */
const mostLevels = 500

/** The maximum number of values. JSON repeats shared objects, so a small graph can expand into endless text. */
const mostValues = 1_000_000

function copy(value: unknown, path: string, above: Set<object>, count: { left: number }): unknown {
  count.left -= 1
  if (count.left < 0) throw notJsonError(path, `more than ${mostValues} values`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  // JSON writes -0 as 0.
  if (typeof value === 'number' && Number.isFinite(value)) return value + 0
  if (typeof value !== 'object')
    throw notJsonError(
      path,
      typeof value === 'number' || value === undefined ? String(value) : `a ${typeof value}`,
    )
  if (above.has(value)) throw notJsonError(path, 'an object that contains itself')
  if (above.size >= mostLevels) throw notJsonError(path, `more than ${mostLevels} levels deep`)
  above.add(value)
  const copied = copyObject(value, path, above, count)
  above.delete(value)
  return copied
}

function copyObject(value: object, path: string, above: Set<object>, count: { left: number }): object {
  if (Array.isArray(value)) return Array.from(value, (item, i) => copy(item, `${path}[${i}]`, above, count))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw notJsonError(
      path,
      `a ${(value as { constructor?: { name?: string } }).constructor?.name ?? 'class instance'}`,
    )
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, copy(item, `${path}.${key}`, above, count)]))
}

function notJsonError(fullPath: string, what: string): UsageError {
  const path = fullPath.length > 200 ? `${fullPath.slice(0, 200)}…` : fullPath
  const message = `${path} is ${what}, which JSON cannot represent. Store plain data, such as an id, a string or a time in milliseconds.`
  return new UsageError('not_json', message, path)
}

/** The rejection of an actor as plain data. Properties that are not JSON are left out. */
export function toPlainFailure(error: unknown): Record<string, unknown> {
  if (typeof error !== 'object' || error === null) return { name: 'Error', message: String(error) }
  try {
    const { name, message, code } = error as Record<'name' | 'message' | 'code', unknown>
    // The code may be inherited.
    const entries = Object.entries({ code, ...error }).flatMap(([key, value]) =>
      valueOr(() => (value === undefined ? [] : [[key, copyJson(value, key)] as const]), []),
    )
    const extra = Object.fromEntries(entries)
    return {
      ...extra,
      name: typeof name === 'string' ? name : 'Error',
      message: typeof message === 'string' ? message : JSON.stringify(extra),
    }
  } catch (cause) {
    // A property of the error throws.
    return { name: 'Error', message: describeError(cause) }
  }
}
