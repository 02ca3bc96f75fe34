/**
 * The places where a text occurs in a value: paths such as `events.3.message.content`, each with some
 * surrounding text.
 */
export function placesOf(text: string, value: unknown, path = ''): string[] {
  if (typeof value === 'string') {
    const at = value.indexOf(text)
    return at < 0 ? [] : [`${path}: …${value.slice(Math.max(0, at - 20), at + text.length + 20)}…`]
  }
  if (typeof value !== 'object' || value === null) return []
  const inside = value instanceof Map ? [...value] : Object.entries(value)
  return inside.flatMap(([key, each]: [unknown, unknown]) => [
    ...(typeof key === 'string' && key.includes(text) ? [`${path}: the key ${key}`] : []),
    ...placesOf(text, each, path === '' ? String(key) : `${path}.${String(key)}`),
  ])
}
