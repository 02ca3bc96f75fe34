import { quoteShellWord } from '../../core/format/shell-words.js'
import type { CheckedOptions } from './options.js'
import type { Question } from './questions.js'
import type { ToolResult } from './task-view.js'
import type { StandingTask } from './task-desk.js'

/**
 * The result for a client that cannot be asked. Its reader is the model that made the call, so that it has no command that answers
 * unless the app asks for one.
 */
export function describeWaiting(
  { id, named, session, status, about, questions }: StandingTask,
  { answerUrl, answerCommand }: Pick<CheckedOptions, 'answerUrl' | 'answerCommand'>,
): ToolResult {
  const again = `Call this tool again with the same arguments and the session '${named}'`
  const where = [
    ...(answerUrl === undefined ? [] : [answerUrl(id)]),
    ...(answerCommand === undefined ? [] : questions.map((one) => formatAnswer(answerCommand, session, one))),
  ]
  const how =
    where.length > 0
      ? `A person answers it here:\n${where.join('\n')}`
      : 'A person answers it, not you: in the app that runs this agent, or on its server with the command\nstatewright send.'
  const text =
    status === 'input_required'
      ? `The agent waits for a person.\n${about}\n${how}\n${again} to get the answer.`
      : `The agent still works: ${about} ${again}.`
  return {
    content: [{ type: 'text', text }],
    isError: false,
    _meta: { 'statewright/session': named, 'statewright/state': status },
  }
}

function formatAnswer(command: string, session: string, question: Question): string {
  if (question.kind === 'pause') return `${command} ${session} resume`
  const { callId, fingerprint, needs } = question.call
  const name = `${callId}@${fingerprint}`
  const word = `${name.startsWith('-') ? '-- ' : ''}${quoteShellWord(name)}`
  if (needs === 'approval') return `${command} ${session} approve ${word}`
  const value = needs === 'client' ? '"RESULT"' : '{"action":"accept","content":{}}'
  return `${command} ${session} tool-output ${word} ${quoteShellWord(value)}`
}
