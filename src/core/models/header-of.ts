import { asObject } from './as-json.js'

/** A header by its name in lower case, '' when it is not there. `headers` is a `Headers` or a plain object. */
export function headerOf(headers: unknown, name: string): string {
  if (typeof headers !== 'object' || headers === null) return ''
  if ('get' in headers && typeof headers.get === 'function') {
    const value: unknown = headers.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
  const entry = Object.entries(asObject(headers) ?? {}).find(([key]) => key.toLowerCase() === name)
  return typeof entry?.[1] === 'string' || typeof entry?.[1] === 'number' ? String(entry[1]).trim() : ''
}
