import { readFileSync } from 'node:fs'
import { Validator } from '@cfworker/json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'

/** The package's schema of a record. */
export const schema = JSON.parse(
  readFileSync(new URL('../../records.schema.json', import.meta.url), 'utf8'),
) as object

/** The schema with unknown keys rejected. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const inside = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]))
  return 'properties' in inside && !('additionalProperties' in inside)
    ? { ...inside, additionalProperties: false }
    : inside
}

const strict = closed(schema)
/**
 * Compiled, because suites validate each record of each run, and the other validator took a tenth of their
 * time. Without inlining and optimization, which take longer than they save.
 */
const isSound = new Ajv2020({ strict: false, inlineRefs: false, code: { optimize: false } }).compile(
  strict as object,
)
/** Slower, with more detailed errors. */
const validator = new Validator(strict as never, '2020-12')

/** A record's schema violations, with unknown keys rejected. */
export function faults(record: unknown): string[] {
  const stored: unknown = JSON.parse(JSON.stringify(record))
  if (isSound(stored)) return []
  const { errors } = validator.validate(stored)
  if (errors.length > 0) return errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`)
  return (isSound.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`)
}
