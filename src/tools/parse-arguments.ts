import { explainIssues } from './explain-issues.js'
import { jsonProblem } from './json-problem.js'
import { describeError } from './describe-error.js'
import type { Validation } from './standard-schema.js'
import type { Tool } from './tool.js'

export type ParsedArguments = { ok: true; input: unknown } | { ok: false; message: string }

/**
 * The arguments of a call, checked against the tool's schema. What does not fit becomes a message for the model that
 * says where and what to mend. Never throws or rejects; a promise only when the schema checks asynchronously.
 */
export function parseArguments(tool: Tool, text: string): ParsedArguments | Promise<ParsedArguments> {
  let value: unknown
  try {
    value = readJson(text)
  } catch {
    return { ok: false, message: explainBadJson(tool, text) }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'an array' : `a ${typeof value}`
    return { ok: false, message: `The arguments of '${tool.name}' must be a JSON object, but are ${found}.` }
  }
  try {
    const checked = tool.validate(value)
    return 'then' in checked
      ? checked.then(
          (result) => conclude(tool, result),
          (error: unknown) => uncheckable(tool, error),
        )
      : conclude(tool, checked)
  } catch (error) {
    return uncheckable(tool, error)
  }
}

function conclude(tool: Tool, result: Validation): ParsedArguments {
  try {
    if (!result.issues) return { ok: true, input: result.value }
    const problems = explainIssues(result.issues, tool.parameters)
    return {
      ok: false,
      message: `The arguments of '${tool.name}' do not fit its schema:\n${problems}\nCorrect them and call it again.`,
    }
  } catch (error) {
    return uncheckable(tool, error)
  }
}

function uncheckable(tool: Tool, error: unknown): ParsedArguments {
  return {
    ok: false,
    message: `The arguments of '${tool.name}' could not be checked: ${describeError(error)}`,
  }
}

/**
 * Models leave the arguments of a tool without parameters empty, or write null: both are {}. Properties named
 * `__proto__` are dropped, so that a tool which merges its input carelessly does not change the prototype of anything.
 */
export function readJson(text: string): unknown {
  if (text.trim() === '') return {}
  return (mayNameProto.test(text) ? JSON.parse(text, dropProto) : JSON.parse(text)) ?? {}
}

/** `__proto__`, perhaps with one of its characters written as an escape. */
const mayNameProto = /__proto__|\\u00(?:5f|6f|7[024])/i

function dropProto(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value
}

function explainBadJson(tool: Tool, text: string): string {
  const found = jsonProblem(text)
  if (found === null)
    return `The arguments of '${tool.name}' are nested too deeply to be read. Make them flatter.`
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
