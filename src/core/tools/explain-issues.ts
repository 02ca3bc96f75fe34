import type { Json } from '../../../machines/agent/json.js'
import type { Issue } from './standard-schema.js'

/** Issues that are listed; the model mends these first. */
const mostListed = 10
/** Characters of a schema that is shown to say what is expected. */
const mostShown = 200

/**
 * What is wrong with some arguments, one field a line: where, and what is expected there. A message that does not say
 * what it expected ('Invalid input' of a union) gets the field's own schema out of `parameters`.
 */
export function explainIssues(issues: readonly Issue[], parameters?: Json): string {
  const lines = issues.slice(0, mostListed).map(({ message, path = [] }) => {
    const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment))
    const schema = /expected|must|should/i.test(message) ? undefined : findSchema(parameters, keys)
    const expected = schema === undefined ? '' : `; expected ${JSON.stringify(schema).slice(0, mostShown)}`
    return `- ${formatPath(keys)}: ${message}${expected}`
  })
  if (issues.length > mostListed) lines.push(`- and ${issues.length - mostListed} more`)
  return lines.join('\n')
}

function formatPath(keys: readonly PropertyKey[]): string {
  if (keys.length === 0) return '(arguments)'
  return keys.map((key, index) => formatKey(key, index === 0)).join('')
}

function formatKey(key: PropertyKey, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  const name = String(key)
  if (!/^[\w$-]+$/.test(name)) return `[${JSON.stringify(name)}]`
  return first ? name : `.${name}`
}

/** The schema of a field, as far as plain `properties` and `items` lead to it. */
function findSchema(parameters: Json | undefined, keys: readonly PropertyKey[]): Json | undefined {
  if (keys.length === 0) return undefined
  let schema: Json | undefined = parameters
  for (const key of keys) {
    schema =
      typeof key === 'number' ? getOwn(schema, 'items') : getOwn(getOwn(schema, 'properties'), String(key))
  }
  return schema
}

function getOwn(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}
