import { readFileSync } from 'node:fs'
import { Validator } from '@cfworker/json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'

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

const strict = closed(schema)
/** Compiled: suites judge each record of each of their runs, which took the other a tenth of their time. */
const isSound = new Ajv2020({ strict: false }).compile(strict as object)
/** Says more of what is wrong, and takes longer. */
const validator = new Validator(strict as never, '2020-12')

/** What is wrong with a record by the schema, which takes no key here that it does not name. */
export function faults(record: unknown): string[] {
  const stored: unknown = JSON.parse(JSON.stringify(record))
  if (isSound(stored)) return []
  const { errors } = validator.validate(stored)
  if (errors.length > 0) return errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`)
  return (isSound.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`)
}
