import { findJsonProblem } from '../base/json.js'
import { valueOr } from '../base/maybe-promise.js'
import { formatKeyPath } from '../base/text.js'
import type { Tool } from './tool.js'
import { describeError } from '../base/errors.js'
import type { Issue, Validate, Validation } from './input-schema.js'
import type { Json } from '../../../machines/agent/json.js'

/**
 * Parses and validates the arguments of a call. Problems become a message for the model. Never throws or rejects.
 * Returns a promise only if the schema validates asynchronously.
 */
export function parseArguments(tool: Tool, text: string): ParsedArguments | Promise<ParsedArguments> {
  const value = valueOr(() => readJson(text), undefined)
  if (value === undefined) return { ok: false, message: explainBadJson(tool, text) }
  return fitArguments(tool, value)
}

function explainBadJson(tool: Tool, text: string): string {
  const found = findJsonProblem(text)
  if (found === null) return `The arguments of '${tool.name}' are nested too deeply. Use a flatter structure.`
  const { position, problem } = found
  const before = text.slice(0, position)
  const line = before.split('\n').length
  const column = position - before.lastIndexOf('\n')
  const near = JSON.stringify(text.slice(Math.max(0, position - 30), position + 30))
  return (
    `The arguments of '${tool.name}' are not valid JSON: ${problem}, at position ${position} ` +
    `(line ${line}, column ${column}), near ${near}. Send one JSON object.`
  )
}

export type ParsedArguments = { ok: true; input: unknown } | { ok: false; message: string }

/**
 * Validates parsed arguments. Problems become a message for the model. Never throws or rejects. Returns a promise only
 * if the schema validates asynchronously.
 */
export function fitArguments(tool: Tool, value: unknown): ParsedArguments | Promise<ParsedArguments> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'an array' : value === null ? 'null' : `a ${typeof value}`
    return { ok: false, message: `The arguments of '${tool.name}' must be a JSON object, but are ${found}.` }
  }
  return validateWith<ParsedArguments>(
    tool,
    value,
    (result) => {
      if (!result.issues) return { ok: true, input: result.value }
      const problems = explainIssues(result.issues, tool.parameters)
      return {
        ok: false,
        message: `The arguments of '${tool.name}' do not match its schema:\n${problems}\nCorrect them and call it again.`,
      }
    },
    (error) => ({
      ok: false,
      message: `The arguments of '${tool.name}' could not be checked: ${describeError(error)}`,
    }),
  )
}

/** Validates a value, and converts the outcome with `read`. `fail` converts an error of the schema or of `read`. */
export function validateWith<Outcome>(
  schema: { validate: Validate },
  value: unknown,
  read: (result: Validation) => Outcome,
  fail: (error: unknown) => Outcome,
): Outcome | Promise<Outcome> {
  const readSafely = (result: Validation): Outcome => {
    try {
      return read(result)
    } catch (error) {
      return fail(error)
    }
  }
  try {
    const checked = schema.validate(value)
    return 'then' in checked ? checked.then(readSafely, fail) : readSafely(checked)
  } catch (error) {
    return fail(error)
  }
}

/**
 * Parses the JSON of arguments. For tools without parameters, models send empty text or null, which both become {}.
 * `__proto__` is dropped, so that careless merging cannot change a prototype.
 */
export function readJson(text: string): unknown {
  if (text.trim() === '') return {}
  return parseWithoutProto(text) ?? {}
}

export function parseWithoutProto(text: string): unknown {
  if (!mayNameProto.test(text)) return JSON.parse(text)
  return JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value))
}

/** Matches `__proto__`, possibly with escaped characters. */
const mayNameProto = /__proto__|\\u00(?:5f|6f|7[024])/i

const mostListed = 10
const mostShown = 200

/**
 * Formats issues, one per line. If a message does not state the expected type (such as 'Invalid input' for a union),
 * the schema of the field is added.
 */
export function explainIssues(issues: readonly Issue[], parameters?: Json): string {
  const lines = issues.slice(0, mostListed).map(({ message, path = [] }) => {
    const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment))
    const schema = /expected|must|should/i.test(message) ? undefined : findSchema(parameters, keys)
    const expected = schema === undefined ? '' : `; expected ${JSON.stringify(schema).slice(0, mostShown)}`
    return `- ${formatKeyPath(keys) || '(arguments)'}: ${message}${expected}`
  })
  if (issues.length > mostListed) lines.push(`- and ${issues.length - mostListed} more`)
  return lines.join('\n')
}

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
