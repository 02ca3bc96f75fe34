import { isRestState, isWorkState, type RunResult } from '../../../machines/agent/run-result.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { listPendingCalls, toCurrentResult } from '../../../machines/agent/to-result.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { formatToolName } from '../../core/format/format-call.js'
import type { FoldedSession } from '../../core/sessions/fold-session.js'
import type { Agents } from '../../core/drive/define-agents.js'
import { type CheckedExpose, PageView } from '../../web/exposure.js'
import { listQuestions, type Question } from './questions.js'

/** A turn of a session for the protocol. */
export interface TaskView {
  status: 'working' | 'input_required' | 'completed' | 'cancelled'
  /** The current work or question, for people. */
  about: string
  /** Empty except in `input_required`. */
  questions: readonly Question[]
  /** Present in `completed` and `cancelled`. */
  result: ToolResult | null
}

export interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

/** `session` is the client's session id. */
export async function viewTask(
  { run, head, definition }: FoldedSession,
  session: string,
  { agents, expose }: { agents: Agents; expose: CheckedExpose },
): Promise<TaskView> {
  if (run === null) return { status: 'working', about: 'It has not started.', questions: [], result: null }
  const { context } = run
  const { state } = context
  if (state === null || isWorkState(state))
    return { status: 'working', about: describeWork(context), questions: [], result: null }
  const page = new PageView(expose, session)
  const failure = context.error && page.maskFailure(context.error)
  if (isRestState(state)) {
    const pending = listPendingCalls(context)
    const questions = listQuestions({ state, pending, why: failure?.message ?? '' }, head)
    const about = questions.map((question) => question.about).join('\n')
    return { status: 'input_required', about, questions, result: null }
  }
  const meta = { 'statewright/session': session, 'statewright/state': state }
  if (state === 'CANCELLED') {
    const result: ToolResult = { content: toContent('The run was cancelled.'), isError: true, _meta: meta }
    return { status: 'cancelled', about: 'Cancelled.', questions: [], result }
  }
  const { output, reason } = context
  if (state === 'COMPLETED') {
    const structured = await readObject(agents.findAgentFor(definition)?.agent as Agent | undefined, context)
    const result: ToolResult = {
      content: toContent(output),
      ...(structured && { structuredContent: structured }),
      isError: false,
      _meta: meta,
    }
    return { status: 'completed', about: 'Completed.', questions: [], result }
  }
  const why = failure?.message ?? `The run ended: ${reason ?? state}.`
  const content = toContent(output === '' ? why : `${output}\n\n[The answer is not complete. ${why}]`)
  return { status: 'completed', about: why, questions: [], result: { content, isError: true, _meta: meta } }
}

function toContent(text: string): ToolResult['content'] {
  return [{ type: 'text', text }]
}

/** The answer as an object, for an agent with an output schema. */
async function readObject(
  agent: Agent | undefined,
  context: AgentContext,
): Promise<Record<string, unknown> | undefined> {
  if (!agent || !context.features.structuredOutput) return undefined
  const { object } = await agent.withObject(toCurrentResult(context) as RunResult)
  // As JSON, because a schema may have created dates and the like.
  const json = object === undefined ? undefined : (JSON.parse(JSON.stringify(object)) as unknown)
  return typeof json === 'object' && json !== null && !Array.isArray(json)
    ? (json as Record<string, unknown>)
    : undefined
}

function describeWork({ calls, steps, state }: AgentContext): string {
  const open = state === 'WAITING_FOR_TOOL' ? calls.filter(({ result }) => result === undefined) : []
  const names = [...new Set(open.map(({ name }) => formatToolName(name)))]
  const shown = names.length > 5 ? [...names.slice(0, 5), '…'] : names
  return shown.length > 0 ? `Step ${steps}: ${shown.join(', ')}.` : `Step ${steps + 1}.`
}
