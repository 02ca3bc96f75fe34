import { readFileSync } from 'node:fs'
import { Validator } from '@cfworker/json-schema'

/** What the package says a record is. */
export const schema = JSON.parse(
  readFileSync(new URL('../../records.schema.json', import.meta.url), 'utf8'),
) as object

/** The schema, told to take no key that it does not name. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const inside = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]))
  return 'properties' in inside && !('additionalProperties' in inside)
    ? { ...inside, additionalProperties: false }
    : inside
}

const validator = new Validator(closed(schema) as never, '2020-12')
/** What is wrong with a record by the schema, which takes no key here that it does not name. */
export const faults = (record: unknown): string[] =>
  validator
    .validate(JSON.parse(JSON.stringify(record)))
    .errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`)
