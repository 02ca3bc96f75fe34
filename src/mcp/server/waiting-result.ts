import type { CheckedOptions } from './options.js'
import type { ToolResult } from './task-view.js'
import type { StandingTask } from './task-desk.js'

/** The result for a client that cannot be asked: what waits, and where a person answers it. */
export function describeWaiting(
  { id, session, status, about, questions }: StandingTask,
  { answerUrl }: Pick<CheckedOptions, 'answerUrl'>,
): ToolResult {
  const where =
    answerUrl === undefined
      ? questions.map((question) =>
          question.kind === 'pause'
            ? `statewright tell ${session} resume`
            : `statewright tell ${session} ${question.call.needs === 'approval' ? 'approve' : 'tool-output'} ` +
              `${question.call.callId}@${question.call.fingerprint}`,
        )
      : [answerUrl(id)]
  const text =
    status === 'input_required'
      ? `The agent waits for a person.\n${about}\nA person answers it here:\n${where.join('\n')}\n` +
        `Call this tool again with the same message and the session '${id}' to get the answer.`
      : `The agent still works: ${about} Call this tool again with the same message and the session '${id}'.`
  return {
    content: [{ type: 'text', text }],
    isError: false,
    _meta: { 'statewright/session': id, 'statewright/state': status },
  }
}
