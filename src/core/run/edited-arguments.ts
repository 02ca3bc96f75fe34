import type { PendingCall } from '../../../machines/agent/run-result.js'
import { UsageError } from '../base/errors.js'
import { fitArguments, readJson } from '../tools/fit-arguments.js'
import type { Tool, ToolsByName } from '../tools/tool.js'
import type { ToolSet } from '../tools/tool-set.js'

/** Arguments that a person has given instead of the model's, as JSON text. */
export interface EditedArguments {
  text: string
  /** Set when the tool checks asynchronously: what is wrong with them, or null. */
  problem?: Promise<UsageError | null>
}

type EditedCall = Pick<PendingCall, 'callId' | 'name' | 'path' | 'hosted'>

/**
 * Checks the arguments that a person wrote in place of the model's. Wrong ones are refused to the person: the model did not
 * write them and could not correct them.
 * @throws {UsageError} `invalid_input` for what cannot be written as JSON, or does not fit the tool's schema
 */
export function parseEditedArguments(
  value: unknown,
  call: EditedCall,
  tools: ToolSet,
  refused: (call: EditedCall, problem: string) => UsageError = refusedApprovalError,
): EditedArguments {
  if (call.hosted) throw refused(call, hostedEditProblem)
  const text = toJsonText(value)
  if (text === undefined)
    throw refused(call, `What was given for call '${call.callId}' cannot be written as JSON.`)
  const tool = findTool(call, tools)
  // The run answers that there is no such tool.
  if (tool === undefined) return { text }
  const parsed = fitArguments(tool, readJson(text))
  if (parsed instanceof Promise) {
    return { text, problem: parsed.then((late) => (late.ok ? null : refused(call, late.message))) }
  }
  if (!parsed.ok) throw refused(call, parsed.message)
  return { text }
}

const hostedEditProblem =
  'The provider carries it out, with the arguments that it has asked for: approve it as it is, or reject it and say what it should be.'

function refusedApprovalError(call: EditedCall, problem: string): UsageError {
  return new UsageError(
    'invalid_input',
    `approve('${call.callId}'): the edited input is refused, and the call waits on. ${problem}`,
    call.callId,
  )
}

function toJsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** The tool of a call, which may be that of a sub-agent. */
export function findTool({ name, path = [] }: EditedCall, tools: ToolSet): Tool | undefined {
  let known: ToolsByName | undefined = tools
  for (const through of path) known = known?.get(through)?.delegate?.tools
  return known?.get(name)
}
