import { fitArguments, type ParsedArguments, readJson } from './fit-arguments.js'
import { findJsonProblem } from '../base/json.js'
import type { Tool } from './tool.js'

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
  return fitArguments(tool, value)
}

function explainBadJson(tool: Tool, text: string): string {
  const found = findJsonProblem(text)
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
