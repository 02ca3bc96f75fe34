import type { AgentContext } from '../../../../machines/agent/context.js'
import type { Message } from '../../../../machines/agent/messages.js'
import { toRunResult } from '../../../../machines/agent/to-result.js'
import type { MachineState } from './record-content.js'
import { completeContext } from './complete-context.js'

/**
 * A state of the machine as a log keeps it. The answer of a run stands in its messages; the context and the result of an
 * ended run repeat it, and an answer may have 100 MB. What `restoreState` makes anew from the messages is left out.
 */
export function toStoredState(state: MachineState): MachineState {
  const { output: _result, ...rest } = state
  const lean = isEnded(state) ? (rest as MachineState) : state
  const { output, ...context } = state.context as AgentContext
  return output !== '' && output === getLastAnswer(context.messages) ? { ...lean, context } : lean
}

/**
 * A state from a log, with everything that `toStoredState` left out. Its history is dropped: a restored run continues from the
 * state that it is in.
 */
export function restoreState(stored: MachineState): MachineState & { context: AgentContext } {
  const kept = stored.context as AgentContext
  const isWhole = Object.hasOwn(kept, 'output')
  const context = completeContext(isWhole ? kept : { ...kept, output: getLastAnswer(kept.messages) })
  const state = { ...stored, historyValue: {}, context }
  return isEnded(state) && stored['output'] === undefined ? { ...state, output: toRunResult(context) } : state
}

const isEnded = ({ status }: MachineState): boolean => status === 'done'

function getLastAnswer(messages: readonly Message[]): string {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content
  return typeof content === 'string' ? content : ''
}
