import { describeError } from '../base/errors.js'
import { explainIssues } from './explain-issues.js'
import type { Validation } from './standard-schema.js'
import type { Tool } from './tool.js'

export type ParsedArguments = { ok: true; input: unknown } | { ok: false; message: string }

/**
 * Arguments that were read from JSON, checked against the tool's schema. What does not fit becomes a message that says
 * where and what to mend. Never throws or rejects; a promise only when the schema checks asynchronously.
 */
export function fitArguments(tool: Tool, value: unknown): ParsedArguments | Promise<ParsedArguments> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = Array.isArray(value) ? 'an array' : `a ${typeof value}`
    return { ok: false, message: `The arguments of '${tool.name}' must be a JSON object, but are ${found}.` }
  }
  try {
    const checked = tool.validate(value)
    return 'then' in checked
      ? checked.then(
          (result) => toParsedArguments(tool, result),
          (error: unknown) => toUncheckable(tool, error),
        )
      : toParsedArguments(tool, checked)
  } catch (error) {
    return toUncheckable(tool, error)
  }
}

function toParsedArguments(tool: Tool, result: Validation): ParsedArguments {
  try {
    if (!result.issues) return { ok: true, input: result.value }
    const problems = explainIssues(result.issues, tool.parameters)
    return {
      ok: false,
      message: `The arguments of '${tool.name}' do not fit its schema:\n${problems}\nCorrect them and call it again.`,
    }
  } catch (error) {
    return toUncheckable(tool, error)
  }
}

function toUncheckable(tool: Tool, error: unknown): ParsedArguments {
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
